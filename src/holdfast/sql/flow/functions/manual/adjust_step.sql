-- Sets how often a step may be executed, whether it is retried at all, and how long after its last failure; what is
-- null stays. A step that has failed as often as it may from now on is given up. One that was given up for want of
-- tries, or that is made retryable, waits again, and its task goes on. A note on the step tells who set what.
create or replace function flow.adjust_step(
  step_id bigint, retry_limit int default null, retryable boolean default null,
  backoff_request_seconds numeric default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  step constant holdfast.steps := flow.step_to_change(adjust_step.step_id);
begin
  perform flow.check_adjustment(step, adjust_step.retry_limit, adjust_step.backoff_request_seconds);
  perform holdfast.set_retry_budget(
    step, case when adjust_step.retry_limit = 0 then 1 else adjust_step.retry_limit end, adjust_step.retryable,
    make_interval(secs => adjust_step.backoff_request_seconds::float));
  perform holdfast.note_change(array[step.id], 'adjusted', jsonb_build_object(
    'retry_limit', adjust_step.retry_limit, 'retryable', adjust_step.retryable,
    'backoff_request_seconds', adjust_step.backoff_request_seconds));
end
$$;
grant execute on function flow.adjust_step to hf_operator;
