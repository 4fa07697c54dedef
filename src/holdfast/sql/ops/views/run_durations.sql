-- The document's average run duration, from claim to end, by status: of the runs that were queued in the last 7 days.
create or replace view ops.run_durations with (security_invoker = true) as
select f.status, avg(extract(epoch from f.finished_at - f.started_at)) as avg_duration_seconds
  from ops.run_facts f
 where f.finished_at is not null and f.queued_at > (select holdfast.clock()) - interval '7 days'
   and coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
 group by f.status;
grant select on ops.run_durations to hf_producer, hf_worker, hf_reader, hf_operator;
