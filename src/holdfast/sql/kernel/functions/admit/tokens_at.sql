-- The tokens in a limit's bucket at that time; null where its rule has no rate. Twelve decimals, rounded down, so that
-- no refill adds up to more than the rate. A clock that went back adds nothing.
create or replace function holdfast.tokens_at(state holdfast.limit_states, rule holdfast.limits, clock timestamptz)
returns numeric
language sql immutable
begin atomic
  select case when rule.rate is null then null
              when state.tokens is null then rule.burst
              else least(rule.burst, state.tokens + trunc(
                     round(rule.rate * greatest(0, extract(epoch from tokens_at.clock - state.filled_at)), 18)
                     / extract(epoch from rule.per), 12)) end;
end;
grant execute on function holdfast.tokens_at to hf_producer, hf_worker, hf_reader, hf_operator;
