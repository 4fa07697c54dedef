-- Sets how often a step may be executed in all, whether it is retried, and how long after its last failure; null
-- changes nothing. A step in a failed state is failed for good at once if its tries are used up. A step that had failed
-- because its tries were used up, or that becomes retryable, backs off for its retry again, and its run continues. The
-- caller has locked the step, checked its tenant and not called set_actor.
create or replace function holdfast.set_retry_budget(
  step holdfast.steps, tries int default null, retryable boolean default null, backoff interval default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  law constant holdfast.policies := (
    select p from holdfast.step_policy(step.policy, step.kind, step.machine, step.tenant) p);
  all_tries constant int := coalesce(set_retry_budget.tries, law.tries);
  is_retryable constant boolean := coalesce(set_retry_budget.retryable, law.retryable);
  rests constant boolean := exists (select from holdfast.machine_states t
                                     where t.machine = step.machine and t.state = step.state
                                       and t.phase = 'open_or_over');
  waits_again constant boolean := rests and is_retryable and (all_tries is null or step.failures < all_tries)
    and (step.finished_at is null or coalesce(step.failures >= law.tries, false)
         or coalesce(set_retry_budget.retryable, false));
  retry_at timestamptz;
begin
  if set_retry_budget.backoff is not null and not waits_again then
    perform holdfast.refuse('RN010', format('step %s is %s and does not wait for a retry', step.id, step.state),
                            'set a backoff only on a step that failed and will be retried');
  end if;
  if waits_again and step.finished_at is not null and step.run_id is not null then
    perform holdfast.set_actor('user', session_user::text, format('step %s is retried', step.id));
    perform holdfast.reopen_run(step.run_id, clock);
    perform holdfast.set_actor();
  end if;
  if waits_again then
    step.failed_at := coalesce(step.failed_at, step.claimed_at, clock);
    retry_at := coalesce(step.failed_at + set_retry_budget.backoff, step.due_at, step.parked_due_at,
                         step.failed_at + holdfast.backoff(law.policy, step.failures));
    perform holdfast.check_due(retry_at);
  end if;
  update holdfast.steps s  -- without an actor: the run is recounted, and closed if it has no live step
     set policy = case when (all_tries, is_retryable) is distinct from (law.tries, law.retryable)
                       then holdfast.policy_with_tries(law.policy, all_tries, is_retryable) else s.policy end,
         finished_at = case when not rests then s.finished_at
                            when not waits_again then coalesce(s.finished_at, clock) end,
         failed_at = step.failed_at,
         due_at = case when not rests then s.due_at when s.parked_due_at is null then retry_at end,
         parked_due_at = case when not rests then s.parked_due_at when s.parked_due_at is not null then retry_at end,
         parked_for = case when not rests or waits_again then s.parked_for end,
         limited_by = case when not rests or waits_again then s.limited_by end
   where s.id = step.id;
  perform holdfast.wake(array[step.queue]);
end
$$;
