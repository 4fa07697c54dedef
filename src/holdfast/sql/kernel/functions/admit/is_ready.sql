-- Whether a claim would take a step now: it is due, and its limits admit it. It is put into a query as it stands; where
-- there are no limits it asks nothing else.
create or replace function holdfast.is_ready(step holdfast.steps, clock timestamptz)
returns boolean
language sql stable
begin atomic
  select case when exists (select from holdfast.limits) or exists (select from holdfast.limit_states)
              then holdfast.would_admit(step, is_ready.clock)
              else holdfast.is_due(step, is_ready.clock) end;
end;
grant execute on function holdfast.is_ready to hf_producer, hf_worker, hf_reader, hf_operator;
