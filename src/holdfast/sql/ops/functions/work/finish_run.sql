-- Ends a run as success, failed or cancelled, and merges the metadata into its own. A claimed run passes through
-- running first. The same end again returns true and does nothing; another end is refused, as is success or failure of
-- a run that nobody has claimed. With `p_worker_id` only the worker that claimed the run can end it.
create or replace function ops.finish_run(
  p_run_id text, p_status text, p_metadata jsonb default '{}', p_worker_id text default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  given constant jsonb := ops.checked_metadata(p_metadata);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
begin
  if p_status is null or p_status not in ('success', 'failed', 'cancelled') then
    perform holdfast.refuse('RN005', format('status must be success, failed or cancelled, got %s', p_status),
                            'a run ends in one of these', 'p_status');
  end if;
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  perform ops.check_worker(facts, p_worker_id);
  if step.finished_at is not null and step.state = p_status then
    return true;
  end if;
  if step.finished_at is not null  -- guard: end
     or (step.state = 'queued' and p_status <> 'cancelled') then
    perform holdfast.refuse(
      'RN010', format('run %s is %s and cannot become %s', facts.run_id, step.state, p_status),
      case when step.finished_at is null then 'claim it first with ops.claim_next_run'
           else 'its end is final; ops.retry_run queues a new run' end, 'p_run_id');
  end if;
  perform ops.end_run(step, p_status, given, p_worker_id);
  return true;
end
$$;
grant execute on function ops.finish_run to hf_worker;
