-- The document's worker utilization: how many runs each worker has claimed and not finished.
create or replace view ops.worker_utilization with (security_invoker = true) as
select f.claimed_by, count(*) as active_runs
  from ops.run_facts f
 where f.status in ('claimed', 'running')
   and coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
 group by f.claimed_by;
grant select on ops.worker_utilization to hf_producer, hf_worker, hf_reader, hf_operator;
