-- Every price that was changed, one row per target. Append-only; rows are kept for two years, longer than their runs.
create or replace view rules.price_changes with (security_invoker = true) as
select l.id, l.tenant as tenant_id, l.channel, l.item_id,
       jsonb_build_object('unit_amount', l.price_before, 'currency', l.currency, 'compare_at', l.compare_at_before)
         as old_json,
       jsonb_build_object('unit_amount', l.price_after, 'currency', l.currency, 'compare_at', l.compare_at_after)
         as new_json,
       l.source, l.effect, l.rule_id, l.rule_version, l.run_id as rule_run_id, l.step_id as target_id,
       l.at as changed_at
  from rules.ledger l
 where coalesce(l.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on rules.price_changes to hf_producer, hf_worker, hf_reader, hf_operator;
