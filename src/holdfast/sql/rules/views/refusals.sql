-- Items that a rule selected and that were refused, with the reason.
create or replace view rules.refusals with (security_invoker = true) as
select x.id, x.run_id as rule_run_id, x.item_id, x.reason, x.message, x.currency, x.price_before, x.price_after,
       f.tenant as tenant_id
  from rules.refused_items x join rules.run_facts f on f.run_id = x.run_id
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on rules.refusals to hf_producer, hf_worker, hf_reader, hf_operator;
