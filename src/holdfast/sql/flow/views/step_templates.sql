-- The steps of each definition.
create or replace view flow.step_templates with (security_invoker = true) as
select d.namespace, d.name as flow, d.version, t.no::int as place, t.step ->> 'name' as name,
  t.step ->> 'kind' as handler,
       array(select a.name from jsonb_array_elements_text(coalesce(t.step -> 'after', '[]')) a (name)) as depends_on,
       (t.step ->> 'retry_limit')::int as retry_limit, coalesce((t.step ->> 'retryable')::boolean, true) as retryable,
       coalesce((t.step ->> 'skippable')::boolean, false) as skippable, t.step ->> 'queue' as queue,
       t.step -> 'config' as handler_config, t.step ->> 'description' as description, d.tenant
  from flow.definitions d, jsonb_array_elements(d.steps) with ordinality t (step, no)
 where d.tenant = '*' or coalesce(d.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on flow.step_templates to hf_producer, hf_worker, hf_reader, hf_operator;
