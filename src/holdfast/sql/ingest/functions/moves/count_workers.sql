-- Adds partitions that ended, or that are retried, to their run's counts, and writes a WORK_DONE per partition that
-- ended.
create or replace function ingest.count_workers(
  run_id uuid, to_state text, from_state text, step_ids bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  facts ingest.run_facts;
  moved constant int := cardinality(count_workers.step_ids);
begin
  -- The lock is a statement of its own: the sum below must see what those who held it before have written.
  perform from ingest.run_facts r where r.run_id = count_workers.run_id for no key update;  -- guard: lock
  update ingest.run_facts r
     set completed_workers = r.completed_workers  -- guard: counted
                             + case when count_workers.to_state = 'completed' then moved else 0 end,
         failed_workers = r.failed_workers + case when count_workers.to_state = 'failed' then moved else 0 end
                          - case when count_workers.from_state = 'failed' then moved else 0 end,
         records = (select coalesce(sum(p.records_processed), 0) from ingest.partitions p
                     where p.run_id = count_workers.run_id)
   where r.run_id = count_workers.run_id
  returning r.* into facts;
  if facts.run_id is not null and count_workers.to_state in ('completed', 'failed') then
    perform ingest.add_event(facts, 'WORK_DONE', null, jsonb_build_object(
              'type', 'WORK_DONE', 'runId', facts.run_id, 'traceId', facts.trace_id, 'workerId', p.worker_id,
              'partitionId', p.partition_id, 'recordsProcessed', p.records_processed, 'status', p.status,
              'error', p.error_message),
              case when count_workers.to_state = 'failed' then 'warning' else 'info' end, p.partition_id)
       from ingest.partitions p where p.step_id = any (count_workers.step_ids);
  end if;
end
$$;
