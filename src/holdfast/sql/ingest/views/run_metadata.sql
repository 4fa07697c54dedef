-- Runs in the words of the document, and beside them what is true: `state`, the window, the counts.
create or replace view ingest.run_metadata with (security_invoker = true) as
select r.run_id, r.run_type, r.expected_workers, r.completed_workers, r.failed_workers, r.watermark_before,
       r.watermark_after, r.started_at, r.completed_at, r.feed, r.state, r.forced, r.updated_from, r.updated_to,
       r.records, r.quarantined, r.deleted, r.reason, r.trace_id, r.tenant, r.estimated, r.is_backfill, r.rounds, r.no
  from ingest.run_facts r
 where coalesce(r.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
-- Writes are granted so that they reach the trigger, whose error says what to do instead.
grant select, insert, update, delete on ingest.run_metadata to hf_producer, hf_worker, hf_reader, hf_operator;
