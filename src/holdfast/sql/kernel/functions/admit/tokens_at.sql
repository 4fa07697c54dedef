-- The tokens in a limit's bucket at that time; null where its rule has no rate.
create or replace function holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamptz)
returns numeric
language sql immutable
begin atomic
  select holdfast.bucket_level(state.tokens, state.filled_at, rule.rate, rule.per, rule.burst, tokens_at.clock);
end;
grant execute on function holdfast.tokens_at to hf_producer, hf_worker, hf_reader, hf_operator;
