-- Retries targets of a run, as retry_failed and retry_all ask for it, and returns for each whether it was queued or
-- skipped, and why. If none is left, nothing changes.
create or replace function rules.retry_targets(
  run_id uuid, only_ids bigint[], without_ids bigint[], classes text[], with_untried boolean, reason text, actor text)
returns table (target_id bigint, item_id text, outcome text, why text)
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
  facts rules.run_facts := rules.facts_to_change(retry_targets.run_id);
  state text;
  ids bigint[];
begin
  perform rules.check_retry(retry_targets.only_ids, retry_targets.without_ids, retry_targets.classes,
                            retry_targets.reason, retry_targets.actor);
  perform rules.lock_run(facts);
  select r.state into strict state from holdfast.runs r where r.id = facts.run_id;
  if state not in ('PARTIAL', 'FAILED') then
    perform holdfast.refuse(
      'RN010', format('run %s is %s and cannot be retried', facts.run_id, state),
      case state when 'PREVIEW' then 'apply it first'
                 when 'ROLLED_BACK' then format('create a new run with `holdfast rules preview --again %s`',
                                                facts.run_id)
                 when 'APPLIED' then 'all of its targets were applied'
                 else 'wait until it ends, or stop it' end, facts.run_id::text);
  end if;
  ids := array(select j.target_id
                 from rules.judged_targets(facts, retry_targets.only_ids, retry_targets.without_ids,
                                           retry_targets.classes, retry_targets.with_untried) j
                where j.skipped is null order by j.target_id);
  return query
  select j.target_id, j.item_id, case when j.skipped is null then 'queued' else 'skipped' end, j.skipped
    from rules.judged_targets(facts, retry_targets.only_ids, retry_targets.without_ids, retry_targets.classes,
                              retry_targets.with_untried) j;
  if ids <> '{}' then
    perform holdfast.set_actor('api', coalesce(retry_targets.actor, session_user), retry_targets.reason);
    perform holdfast.readmit(facts.run_id, ids);
    perform holdfast.set_actor();
  end if;
end
$$;
