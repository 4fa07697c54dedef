-- The document's queues, drawn from the rows that play their part: a partition between two pages is a work item, an
-- event is a message about finished work, and the step that consolidates is the message that triggers it.
create or replace view ingest.messages with (security_invoker = true) as
with delivered as (
  select s.id, s.run_id, s.attempt, s.failures, s.input, s.created_at, s.cursor,
         case when s.state = 'completed' then 'settled' when s.state = 'failed' then 'dead'
              when s.state = 'cancelled' then 'cancelled' when s.lease_id is not null then 'locked'
              when s.due_at > holdfast.clock() then 'scheduled' else 'queued' end as state,
         case when s.lease_id is not null then s.failures + 1 else s.failures end as delivery_count
    from holdfast.steps s
   where s.machine in ('ingest.partition', 'ingest.consolidation')
     and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true))
select 'work-items'::text as queue, format('%s:%s:%s', p.run_id, p.partition_id, p.next_offset) as message_id,
       'WORK_ITEM'::text as type, p.run_id, p.work_item_payload ->> 'traceId' as trace_id,
       p.work_item_payload || jsonb_build_object('offset', p.next_offset) as body, d.delivery_count, d.state,
       p.updated_at as at
  from ingest.partitions p join delivered d on d.id = p.step_id
union all
select 'work-done', format('%s:%s:%s', e.run_id, e.partition_id, e.id), e.event, e.run_id, e.trace_id, e.body, 1,
       'settled', e.at
  from ingest.event_log e
 where e.event = 'WORK_DONE' and coalesce(e.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
union all
select 'consolidate', format('%s:%s', d.run_id, d.id), 'CONSOLIDATE', d.run_id, d.input #>> '{message,traceId}',
       d.input -> 'message', d.delivery_count, d.state, d.created_at
  from delivered d
 where d.input ? 'message';
grant select on ingest.messages to hf_producer, hf_worker, hf_reader, hf_operator;
