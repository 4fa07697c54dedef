-- Watermarks, and each as the document's JSON.
create or replace view ingest.watermarks with (security_invoker = true) as
select w.feed, w.tenant, w.last_updated_at, w.last_run_id, w.last_run_completed_at, w.changed_at,
       jsonb_build_object(
         'lastUpdatedAt',
         replace(to_char(w.last_updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                 '.000000', ''),
         'lastRunId', w.last_run_id,
         'lastRunCompletedAt',
         replace(to_char(w.last_run_completed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                 '.000000', '')) as document
  from ingest.feed_watermarks w
 where coalesce(w.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ingest.watermarks to hf_producer, hf_worker, hf_reader, hf_operator;
