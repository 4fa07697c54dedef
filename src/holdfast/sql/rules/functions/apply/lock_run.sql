-- Locks a run that may be reopened or stopped, then its tenant and channel. The kernel's own retries lock the run
-- before its move calls the face, which locks the channel. The run's advisory lock comes first on both ways, so that
-- neither waits for the other. A run that was never queued has no such retry, and apply locks its channel first.
create or replace function rules.lock_run(facts rules.run_facts)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(holdfast.run_lock(r.id))
     from holdfast.runs r where r.id = facts.run_id and r.queued_at is not null;
  perform rules.lock_channel(facts);
end
$$;
