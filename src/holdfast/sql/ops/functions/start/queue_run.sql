-- Queues a run of a project's environment and returns it. Reusing `p_idempotency_key` returns the existing run,
-- whatever became of it and whatever else the call says. The kind (`p_kind`, else `kind` in the metadata, else deploy)
-- chooses the handlers. A run with `p_due_at` is not claimed before; one with `p_ttl` is cancelled if nobody
-- has claimed it within that time after it was due. `p_actor` names the person that the login acts for.
create or replace function ops.queue_run(
  p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb default '{}',
  p_idempotency_key text default null, p_kind text default null, p_priority int default 0,
  p_due_at timestamptz default null, p_ttl interval default null, p_actor text default null,
  p_tenant text default 'default')
returns table (run_id text, status text, queued_at timestamptz)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  -- A variable: passed as it is, session_user would give its collation to all that begin_run compares.
  actor constant text := coalesce(p_actor, session_user);
  facts ops.run_facts;
begin
  if p_ttl <= '0' then
    perform holdfast.refuse('RN005', format('ttl must be longer than 0, got %s', p_ttl), 'use minutes or hours',
                            'p_ttl');
  end if;
  facts := ops.begin_run(
    p_project_id, p_env, p_git_sha, p_git_ref,
    case when p_metadata = '{}' then p_metadata else ops.checked_metadata(p_metadata) end, p_idempotency_key,
    case when num_nonnulls(p_kind, p_due_at, p_ttl) = 0 and p_priority = 0 then '{}'  -- most calls; it costs less
         else jsonb_build_object('kind', p_kind, 'priority', p_priority, 'due_at', p_due_at, 'ttl', p_ttl) end,
    actor, p_tenant);
  queue_run.run_id := facts.run_id;  -- not by a query, which takes longer
  queue_run.status := facts.status;
  queue_run.queued_at := facts.queued_at;
  return next;
end
$$;
grant execute on function ops.queue_run to hf_producer, hf_worker, hf_operator;
