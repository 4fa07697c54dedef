-- Tells the workers that listen that a schedule changed, by an empty hint: no queue has an empty name. All of them: one
-- that is awake now may sleep by the time that the change commits.
create or replace function holdfast.wake_for_schedules()
returns void
language sql
begin atomic
  select pg_notify('holdfast', '');  -- guard: hint
end;
