-- The document's queue depth: how many runs are queued.
create or replace view ops.queue_depth with (security_invoker = true) as
select count(*) as queued_count
  from ops.run_facts f
 where f.status = 'queued'
   and coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on ops.queue_depth to hf_producer, hf_worker, hf_reader, hf_operator;
