-- When a limit's bucket will hold enough for a charge, to the microsecond; null where its rule has no rate. What is
-- more than a full bucket waits for a full one.
create or replace function holdfast.tokens_suffice_at(
  state holdfast.limit_states, rule holdfast.limits, charge numeric, clock timestamptz)
returns timestamptz
language sql immutable
begin atomic
  select case when rule.rate is null then null
              when holdfast.tokens_at(state, rule, tokens_suffice_at.clock)
                   >= least(tokens_suffice_at.charge, rule.burst) then tokens_suffice_at.clock
              else state.filled_at + interval '1 microsecond' * least(
                     ceil((least(tokens_suffice_at.charge, rule.burst) - state.tokens)
                          * extract(epoch from rule.per) * 1000000 / rule.rate),
                     3e15)::double precision end;  -- a hundred years
end;
