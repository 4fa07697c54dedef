-- The UPDATE trigger of flow.steps: changes retry_limit, retryable and backoff_request_seconds for logins that may
-- adjust steps, and refuses everything else. A limit or flag of null restores the default; a backoff of null is 2 ^
-- attempts seconds, at most 30.
create or replace function flow.take_adjustment()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  adjustable constant text[] := '{retry_limit,retryable,backoff_request_seconds}';
  odd constant text := (
    select string_agg(n.key, ', ' order by n.key)
      from jsonb_each(to_jsonb(new) - adjustable) n
     where n.value is distinct from to_jsonb(old) -> n.key);
begin
  if odd is not null then
    raise exception using errcode = 'RN005', message = format('%s of flow.steps cannot be updated', odd),
      hint = 'move a step with flow.safe_transition_to, retry it with holdfast.retry, resolve it with '
             'holdfast.resolve, cancel it with holdfast.cancel; only retry_limit, retryable and '
             'backoff_request_seconds can be set';
  end if;
  if new is not distinct from old then
    return new;
  end if;
  perform flow.adjust_step(
    old.step_id,
    case when new.retry_limit is distinct from old.retry_limit then coalesce(
      new.retry_limit, (select p.tries from holdfast.policy_of(null, null, 'flow.step') p)) end,
    case when new.retryable is distinct from old.retryable then coalesce(new.retryable, true) end,
    case when new.backoff_request_seconds is distinct from old.backoff_request_seconds then coalesce(
      new.backoff_request_seconds, extract(epoch from holdfast.backoff('flow.sql', old.attempts))) end);
  return new;
end
$$;
