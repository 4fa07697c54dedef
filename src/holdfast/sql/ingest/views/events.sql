-- What happened to runs, written in the transaction in which it did: moves, WORK_DONE, CONSOLIDATE and alerts.
create or replace view ingest.events with (security_invoker = true) as
select e.id, e.at, e.feed, e.run_id, e.trace_id, e.event, e.severity, e.partition_id, e.message, e.body, e.tenant
  from ingest.event_log e
 where coalesce(e.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ingest.events to hf_producer, hf_worker, hf_reader, hf_operator;
