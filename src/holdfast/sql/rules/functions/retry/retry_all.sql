-- Retries everything of a run that ended and was not applied: its failed targets, as retry_failed does, and those that
-- were never tried because it was stopped.
create or replace function rules.retry_all(run_id uuid, reason text default null, actor text default null)
returns table (target_id bigint, item_id text, outcome text, why text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select t.* from rules.retry_targets(
    retry_all.run_id, null, null, null, true, retry_all.reason, retry_all.actor) t;
end
$$;
grant execute on function rules.retry_all to hf_operator;
