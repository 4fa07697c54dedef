-- Queues a run that goes back to the last sha that succeeded in the same environment before the given run, which is
-- over. While a rollback of the run is not over, that one is returned. `p_actor` names the person that the login acts
-- for.
create or replace function ops.rollback_run(p_run_id text, p_reason text default null, p_actor text default null)
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
  source ops.run_facts;
begin
  perform holdfast.check_reason(p_reason);
  held := ops.lock_finished(p_run_id);
  facts := held.facts;
  select f.* into source from ops.run_facts f
   where f.env_id = facts.env_id and f.status = 'success' and f.step_id < facts.step_id and f.kind = facts.kind
     and f.git_sha is distinct from facts.git_sha and f.git_sha is not null
   order by f.step_id desc
   limit 1;
  if not found then
    perform holdfast.refuse(
      'RN010', format('no other sha succeeded in %s before run %s', coalesce(facts.env, 'its environment'),
                      facts.run_id),
      'queue a run with the sha to go back to', 'p_run_id');
  end if;
  return query
  select n.run_id, n.status, n.queued_at
    from ops.again(facts, source, 'rollback_of', p_reason, actor) n;
end
$$;
grant execute on function ops.rollback_run to hf_producer, hf_operator;
