-- Queues a new run with what a finished one was queued with, linked to it. A failed run leaves the dead letter by this.
-- While a retry of the run is not over, that one is returned. `p_actor` names the person that the login acts for.
create or replace function ops.retry_run(p_run_id text, p_reason text default null, p_actor text default null)
returns table (run_id text, status text, queued_at timestamptz)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  actor constant text := coalesce(p_actor, session_user);
  held record;
  facts ops.run_facts;
begin
  perform holdfast.check_reason(p_reason);
  held := ops.lock_finished(p_run_id);
  facts := held.facts;
  return query
  select n.run_id, n.status, n.queued_at from ops.again(facts, facts, 'retry_of', p_reason, actor) n;
  perform holdfast.mark_resolved(held.step, coalesce(p_reason, 'retried'), actor);
end
$$;
grant execute on function ops.retry_run to hf_producer, hf_operator;
