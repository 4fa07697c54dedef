-- Sets how often a step may be executed, whether it is tried again at all, and how long after its last failure; what is null stays.
-- A step that has failed as often as it may from now on is given up. One that was given up for want of tries, or that is made
-- retryable, waits again, and its task goes on. A note on the step tells who set what.
create or replace function flow.adjust_step(
  step_id bigint, retry_limit int default null, retryable boolean default null, backoff_request_seconds numeric default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  step holdfast.steps := flow.step_to_change(adjust_step.step_id);
  law constant holdfast.policies := (
    select p from holdfast.step_policy(step.policy, step.kind, step.machine, step.tenant) p);
  tries constant int := flow.adjusted_tries(law.tries, adjust_step.retry_limit);
  is_retryable constant boolean := coalesce(adjust_step.retryable, law.retryable);
  waits_again constant boolean := step.state = 'error' and is_retryable and (tries is null or step.failures < tries)
    and (step.finished_at is null or coalesce(step.failures >= law.tries, false) or coalesce(adjust_step.retryable, false));
  retry_at timestamptz;
begin
  perform flow.check_adjustment(step, waits_again, adjust_step.backoff_request_seconds);
  if waits_again and step.finished_at is not null then
    perform holdfast.set_actor('user', session_user::text, format('step %s is tried again', step.id));
    perform holdfast.reopen_run(step.run_id, clock);
    perform holdfast.set_actor();
  end if;
  if waits_again then
    step.failed_at := coalesce(step.failed_at, step.claimed_at, clock);
    retry_at := coalesce(
      step.failed_at + make_interval(secs => adjust_step.backoff_request_seconds::float), step.due_at, step.parked_due_at,
      step.failed_at + holdfast.backoff(law.policy, step.failures));
  end if;
  update holdfast.steps s  -- not announced: the run is counted anew, and closed when nothing of it is live
     set policy = case when (tries, is_retryable) is distinct from (law.tries, law.retryable)
                       then flow.policy_with_tries(law.policy, tries, is_retryable) else s.policy end,
         finished_at = case when s.state <> 'error' then null when not waits_again then coalesce(s.finished_at, clock) end,
         failed_at = step.failed_at,
         due_at = case when s.state <> 'error' then s.due_at when s.parked_due_at is null then retry_at end,
         parked_due_at = case when s.state <> 'error' then s.parked_due_at when s.parked_due_at is not null then retry_at end,
         parked_for = case when s.state <> 'error' or waits_again then s.parked_for end
   where s.id = step.id;
  insert into holdfast.notes (at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  values (clock, step.tenant, step.id, step.run_id, step.attempt, step.lease_id, 'info', format('adjusted by %s', session_user),
          jsonb_strip_nulls(jsonb_build_object(
            'retry_limit', adjust_step.retry_limit, 'retryable', adjust_step.retryable,
            'backoff_request_seconds', adjust_step.backoff_request_seconds, 'actor', session_user)));
  perform holdfast.wake(array[step.queue]);
end
$$;
grant execute on function flow.adjust_step to hf_operator;
