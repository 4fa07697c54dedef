-- Keeps the lease of a claimed or running run. Returns whether the run is still on: false tells its worker to stop,
-- because it was cancelled or ended otherwise. With `p_worker_id` only the worker that claimed it can keep it.
create or replace function ops.heartbeat(p_run_id text, p_worker_id text default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  held record;
  step holdfast.steps;
  facts ops.run_facts;
begin
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  perform ops.check_worker(facts, p_worker_id);
  if step.finished_at is null and step.lease_id is null then
    perform holdfast.refuse('RN010', format('run %s is %s: nobody has claimed it', facts.run_id, step.state),
                            'claim it first with ops.claim_next_run', 'p_run_id');
  end if;
  if step.lease_id is not null then
    perform holdfast.report_on(step, coalesce(facts.lease, interval '5 minutes'), false, holdfast.clock());
  end if;
  return step.lease_id is not null;
end
$$;
grant execute on function ops.heartbeat to hf_worker;
