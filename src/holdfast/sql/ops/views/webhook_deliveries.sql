-- What webhooks delivered, and what became of it: `queued`, or why no run was.
create or replace view ops.webhook_deliveries with (security_invoker = true) as
select d.source, d.delivery, d.event, d.repository, d.git_ref, d.git_sha, d.outcome, d.run_ids, d.received_at, d.tenant
  from ops.deliveries d
 where coalesce(d.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ops.webhook_deliveries to hf_producer, hf_worker, hf_reader, hf_operator;
