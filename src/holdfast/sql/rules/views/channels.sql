-- The channels that workers registered; `tenant_id` is * for all tenants.
create or replace view rules.channels with (security_invoker = true) as
select c.channel, c.tenant as tenant_id, c.kind, c.about, c.batch, c.request_timeout, c.target_timeout,
       'rules:' || c.channel as queue, c.defined_at, c.defined_by,
       (select count(*) from rules.run_facts f
         where f.channel = c.channel and f.is_open and (c.tenant = '*' or f.tenant = c.tenant)) as open_runs
  from rules.known_channels c
 where c.tenant = '*' or coalesce(c.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on rules.channels to hf_producer, hf_worker, hf_reader, hf_operator;
