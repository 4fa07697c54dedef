-- The document's success rate: of the runs that were queued in the last 24 hours and ended as success or failed. The
-- rate is null if there are none.
create or replace view ops.success_rate with (security_invoker = true) as
select count(*) filter (where f.status = 'success') as success_count,
       count(*) filter (where f.status = 'failed') as failed_count,
       round(100.0 * count(*) filter (where f.status = 'success') / nullif(count(*), 0), 2) as success_rate
  from ops.run_facts f
 where f.status in ('success', 'failed') and f.queued_at > (select holdfast.clock()) - interval '24 hours'
   and coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on ops.success_rate to hf_producer, hf_worker, hf_reader, hf_operator;
