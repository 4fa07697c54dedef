-- How far each partition is. With key or token paging next_offset is the number of records read so far. Its UPDATE
-- moves the offset of a partition that nobody holds (ingest.move_offset).
create or replace view ingest.partition_progress with (security_invoker = true) as
select p.run_id, p.partition_id, p.next_offset, p.completed, p.created_at, p.updated_at
  from ingest.partitions p
 where coalesce(p.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ingest.partition_progress to hf_producer, hf_worker, hf_reader, hf_operator;
