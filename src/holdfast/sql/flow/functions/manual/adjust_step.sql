-- Sets how often a step may be executed, whether it is retried at all, and how long after its last failure; null
-- changes nothing. A step that has used up its tries by this fails for good. A step that had failed because its tries
-- were used up, or that becomes retryable, backs off again, and its task continues. A note on the step records who set
-- what.
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
