-- The rules of retention for people; `rule` says each in words. A default that another rule replaces is left out.
create or replace view holdfast.retention_list with (security_invoker = true) as
select r.what, r.tenant, r.machine, r.queue, r.outcome, r.keep, holdfast.rule_text(r) as rule, r.set_at,
       r.is_default
  from holdfast.retention_rules r
 where (r.tenant = '*' or coalesce(r.tenant = any ((select holdfast.allowed_tenants())::text[]), true))
   and not (r.is_default and exists (
         select from holdfast.retention_rules o
          where o.what = r.what and not o.is_default and o.tenant = '*' and num_nonnulls(o.machine, o.queue) = 0
            and coalesce(o.outcome = r.outcome, true)));
grant select on holdfast.retention_list to hf_producer, hf_worker, hf_reader, hf_operator;
