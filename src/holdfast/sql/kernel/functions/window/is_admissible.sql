-- Whether a step can be admitted: it is neither due, parked, held, waiting nor over, or it failed and `takes_failed`.
-- PostgreSQL inlines it.
create or replace function holdfast.is_admissible(step holdfast.steps, takes_failed boolean)
returns boolean
language sql immutable
begin atomic
  select case when step.finished_at is null
              then step.due_at is null and step.lease_id is null and step.parked_due_at is null and step.waits = 0
              else is_admissible.takes_failed
                   and step.last_event not in ('succeeded', 'cancelled', 'resolved', 'rolled_back') end;
end;
