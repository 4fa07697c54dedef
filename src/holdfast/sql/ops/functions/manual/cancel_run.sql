-- Cancels a run, waiting, claimed or running. Its worker learns of it from its next event or heartbeat. A run that is
-- already cancelled stays as it is; one that ended otherwise is refused. `p_actor` names the person that the login acts
-- for.
create or replace function ops.cancel_run(p_run_id text, p_reason text default null, p_actor text default null)
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
  perform holdfast.check_reason(p_reason);
  perform holdfast.check_name('actor', p_actor);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  if step.state = 'cancelled' then
    return true;
  end if;
  if step.finished_at is not null then  -- guard: end
    perform holdfast.refuse('RN010', format('run %s is %s and cannot be cancelled', facts.run_id, step.state),
                            'its end is final; ops.rollback_run queues a run that goes back', 'p_run_id');
  end if;
  perform holdfast.set_actor('user', coalesce(p_actor, session_user), p_reason);
  perform from holdfast.move_steps(array[
    (step.id, step.lease_id, 'cancelled', null, null, null, null)::holdfast.step_move]);
  perform holdfast.set_actor();
  return true;
end
$$;
grant execute on function ops.cancel_run to hf_producer, hf_operator;
