-- Lets one transaction at a time plan passes over a run. Who plans one calls it before reading what is planned and
-- what became of the run. It is not the row of the run's facts: a settle of a rollback has that and then waits for the
-- channel's limit, which a settle that ends a pass has.
create or replace function rules.lock_passes(run_id uuid)
returns void
language sql
begin atomic
  select pg_advisory_xact_lock(hashtextextended('rules.passes ' || lock_passes.run_id, 0));
end;
