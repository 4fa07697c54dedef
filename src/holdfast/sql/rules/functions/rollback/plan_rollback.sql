-- Plans a rollback, as rules.rollback does for its callers. The actor is the one that the journal names.
create or replace function rules.plan_rollback(
  facts rules.run_facts, only_ids bigint[], without_ids bigint[], force jsonb, apply boolean, expires_in interval,
  key text, reason text, author text)
returns table (rollback_id uuid, status text, plan_hash text, expires_at timestamptz, targets int, unknown int)
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  undone rules.run_facts;
  rule rules.rule_versions;
  more jsonb;
  made record;
begin
  perform rules.lock_run(facts);
  select f.* into strict undone from rules.run_facts f where f.run_id = facts.run_id;
  perform rules.check_rollback(undone, plan_rollback.only_ids, plan_rollback.without_ids);
  unknown := rules.settle_unknown(undone, plan_rollback.reason, plan_rollback.author);  -- guard: unknown
  if unknown > 0 then
    return next;
    return;
  end if;
  more := rules.stage_inverse(undone, plan_rollback.only_ids, plan_rollback.without_ids, plan_rollback.force);
  select v.* into strict rule from rules.rule_versions v
   where v.tenant = undone.tenant and v.rule_id = undone.rule_id and v.version = undone.rule_version;
  facts.source := 'rollback';
  facts.metadata := jsonb_build_object('reason', plan_rollback.reason);
  facts.metadata := jsonb_strip_nulls(facts.metadata);
  facts.expires_at := holdfast.clock() + plan_rollback.expires_in;
  facts.undoes := undone.run_id;
  select k.* into strict made
    from rules.keep_preview(facts, rule, more, 0, undone.run_id, plan_rollback.key, plan_rollback.author) k;
  if plan_rollback.apply then
    perform from rules.apply(made.run_id, reason => plan_rollback.reason, actor => plan_rollback.author);
  end if;
  return query select made.run_id, r.state, made.plan_hash, made.expires_at, made.targets, 0
                 from holdfast.runs r where r.id = made.run_id;
end
$$;
