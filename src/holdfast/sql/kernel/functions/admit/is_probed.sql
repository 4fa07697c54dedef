-- Whether the probe of a limit's breaker is on its way: the step is held and counted by the limit. Asked in a statement
-- that begins after the state was locked, or the claim that it waited for would not be seen.
create or replace function holdfast.is_probed(state holdfast.limit_states)
returns boolean
language sql stable
begin atomic
  select state.probe_id is not null and exists (
    select from holdfast.steps s
     where s.id = state.probe_id and s.lease_id is not null and state.id = any (s.holds));
end;
grant execute on function holdfast.is_probed to hf_producer, hf_worker, hf_reader, hf_operator;
