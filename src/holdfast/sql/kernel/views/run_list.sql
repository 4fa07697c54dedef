-- Runs as people look at them.
create or replace view holdfast.run_list with (security_invoker = true) as
select r.id, r.name, r.machine, r.state, r.tenant, r.total, r.live, r.succeeded, r.failed, r.cancelled,
       r.total - r.live - r.succeeded - r.failed - r.cancelled as waiting,
       r.created_at, r.started_at, r.finished_at, r.of_run, r.moving
  from holdfast.runs r
 where coalesce(r.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.run_list to hf_producer, hf_worker, hf_reader, hf_operator;
