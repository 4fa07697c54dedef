-- Approves or rejects a run that waits for it, with a reason: `p_decision` is approved or rejected. An approved run can
-- be claimed, a rejected one is cancelled. Whoever queued the run cannot decide. `p_actor` names the person that the
-- login acts for. Returns the decision.
create or replace function ops.decide_approval(
  p_run_id text, p_decision text, p_reason text, p_actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  name constant text := coalesce(p_actor, session_user);
  held record;
  step holdfast.steps;
  facts ops.run_facts;
  approval ops.run_approvals;
begin
  if p_decision is null or p_decision not in ('approved', 'rejected') then
    perform holdfast.refuse('RN005', format('decision must be approved or rejected, got %s', p_decision),
                            'name one of them', 'p_decision');
  end if;
  if coalesce(trim(p_reason), '') = '' then
    perform holdfast.refuse('RN005', 'a decision needs a reason', 'say in a few words why', 'p_reason');
  end if;
  perform holdfast.check_reason(p_reason);
  perform holdfast.check_name('actor', p_actor);
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  facts := held.facts;
  select a.* into approval from ops.run_approvals a where a.step_id = step.id;
  if approval.decision is not null or step.parked_for is distinct from 'approval' then  -- guard: waiting
    perform holdfast.refuse(
      'RN010', case when approval.decision is null
                    then format('run %s is %s and waits for no approval', facts.run_id, step.state)
                    else format('run %s was %s by %s', facts.run_id, approval.decision, approval.decided_by) end,
      'a run is decided on once; queue or retry it for another decision', 'p_run_id');
  end if;
  if approval.expires_at <= clock then  -- guard: late
    perform holdfast.refuse('RN010', format('the approval of run %s expired at %s', facts.run_id, approval.expires_at),
                            'queue it again with ops.retry_run once it is cancelled', 'p_run_id');
  end if;
  -- Neither under another name than the one that asked, nor by a login that asked under another name.
  if approval.requested_by in (name, session_user) or approval.requested_login = name then  -- guard: own
    perform holdfast.refuse('RN010', format('%s queued run %s and cannot decide on it', name, facts.run_id),
                            'somebody else has to approve or reject it', 'p_actor');
  end if;
  update ops.run_approvals a
     set decision = p_decision, decided_by = name, decided_at = clock, reason = p_reason,
         login = case when name <> session_user then session_user end
   where a.step_id = step.id;
  if p_decision = 'approved' then
    perform from holdfast.unpark(array[step.id], p_reason, name, is_by_face => true);
  else
    perform holdfast.set_actor('user', name, 'Approval rejected: ' || p_reason);
    perform from holdfast.move_steps(array[
      (step.id, null, 'cancelled', null, null, null, null)::holdfast.step_move]);
    perform holdfast.set_actor();
  end if;
  return p_decision;
end
$$;
grant execute on function ops.decide_approval to hf_operator;
