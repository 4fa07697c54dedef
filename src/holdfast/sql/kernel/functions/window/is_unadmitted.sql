-- Whether a step is not admitted: neither due, parked, held, waiting for a parent nor over. The only definition;
-- PostgreSQL inlines it.
create or replace function holdfast.is_unadmitted(step holdfast.steps)
returns boolean
language sql immutable
begin atomic
  select step.finished_at is null and step.due_at is null and step.lease_id is null and step.parked_due_at is null
     and step.waits = 0;
end;
