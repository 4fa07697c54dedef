-- Claims the run that has waited longest in queue `ops`, of the highest priority, under a lease of five minutes that
-- events and heartbeats renew. Returns no row if there is none. A run that has waited past its time is cancelled
-- instead.
create or replace function ops.claim_next_run(p_worker_id text)
returns table (run_id text, project_id text, env_id text, git_sha text, git_ref text, metadata jsonb)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  claimed bigint;
begin
  if exists (select from ops.run_facts f where f.status || '' = 'queued' and f.expires_at <= clock) then
    perform from ops.expire_runs(clock, holdfast.allowed_tenants());
  end if;
  claimed := (select c.step_id from holdfast.claim_steps(p_worker_id, 'ops', batch => 1, machine => 'ops.run') c);
  return query
  select f.run_id, f.project_id, f.env_id, f.git_sha, f.git_ref, f.metadata
    from ops.run_facts f
   where f.step_id = claimed;
end
$$;
grant execute on function ops.claim_next_run to hf_worker;
