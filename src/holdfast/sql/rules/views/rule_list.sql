-- The rules as they are defined now, each with its latest version. What a preview froze without a definition is not
-- listed.
create or replace view rules.rule_list with (security_invoker = true) as
select distinct on (v.tenant, v.rule_id) v.rule_id, v.tenant as tenant_id, v.version, v.definition, v.defined_at,
       v.defined_by
  from rules.rule_versions v
 where not v.is_draft and coalesce(v.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
 order by v.tenant, v.rule_id, v.version desc;
grant select on rules.rule_list to hf_producer, hf_worker, hf_reader, hf_operator;
