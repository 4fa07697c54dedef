-- The partitions that a worker has started, in the words of the document: one row per partition, also after a retry.
create or replace view ingest.worker_runs with (security_invoker = true) as
select p.id, p.run_id, p.partition_id, p.worker_id, p.status, p.records_processed, p.error_message,
       p.work_item_payload, p.started_at, p.completed_at
  from ingest.partitions p
 where p.worker_id is not null and coalesce(p.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ingest.worker_runs to hf_producer, hf_worker, hf_reader, hf_operator;
