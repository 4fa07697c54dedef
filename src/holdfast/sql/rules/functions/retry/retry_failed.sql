-- Retries the failed targets of a run that ended: all of them, only_ids, all but without_ids, or those whose errors
-- are of `classes`. Each has a fresh budget. Returns for each target whether it was queued or skipped, and why; a
-- stale target needs a new preview. `actor` names the person that the login acts for.
create or replace function rules.retry_failed(
  run_id uuid, only_ids bigint[] default null, without_ids bigint[] default null, classes text[] default null,
  reason text default null, actor text default null)
returns table (target_id bigint, item_id text, outcome text, why text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select t.* from rules.retry_targets(
    retry_failed.run_id, retry_failed.only_ids, retry_failed.without_ids, retry_failed.classes, false,
    retry_failed.reason, retry_failed.actor) t;
end
$$;
grant execute on function rules.retry_failed to hf_operator;
