-- Plans the rollback of a run that was applied: a run in PREVIEW, with the source `rollback`, whose plan is the inverse
-- of what is APPLIED there, or with `apply` a queued one. Of a PARTIAL run `only_ids` or `without_ids` choose targets.
-- `force` overwrites what somebody else wrote since: an array of objects with target_id and what the channel was seen
-- to show (unit_amount, compare_at). If outcomes of the run are unknown, these targets are read first: then `unknown`
-- is their number, `rollback_id` is null and the call is repeated when the run is over. `actor` names the person that
-- the login acts for.
create or replace function rules.rollback(
  run_id uuid, only_ids bigint[] default null, without_ids bigint[] default null, force jsonb default '[]',
  apply boolean default false, expires_in interval default '24 hours', key text default null,
  reason text default null, actor text default null)
returns table (rollback_id uuid, status text, plan_hash text, expires_at timestamptz, targets int, unknown int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  facts constant rules.run_facts := rules.facts_to_change(rollback.run_id);
begin
  perform holdfast.check_reason(rollback.reason);
  perform rules.check_preview('{}', 'rollback', '{}', null, rollback.expires_in, 0, rollback.key, rollback.actor);
  return query select p.* from rules.plan_rollback(
    facts, rollback.only_ids, rollback.without_ids, rollback.force, rollback.apply, rollback.expires_in, rollback.key,
    rollback.reason, coalesce(rollback.actor, session_user)) p;
end
$$;
grant execute on function rules.rollback to hf_operator;
