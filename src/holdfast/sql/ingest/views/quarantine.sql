-- Records that could not be stored or mapped, with the reason.
create or replace view ingest.quarantine with (security_invoker = true) as
select q.id, q.run_id, q.feed, q.partition_id, q.stage, q.key, q.record, q.error, q.at, q.tenant
  from ingest.quarantined q
 where coalesce(q.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ingest.quarantine to hf_producer, hf_worker, hf_reader, hf_operator;
