-- What runs produced, and where it is.
create or replace view ops.artifacts with (security_invoker = true) as
select a.artifact_id, f.run_id, a.type, a.url, a.digest, a.size_bytes, a.metadata, a.created_at, f.project_id,
       f.env_id, a.tenant
  from ops.run_artifacts a
  join ops.run_facts f on f.step_id = a.step_id
 where coalesce(a.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ops.artifacts to hf_producer, hf_worker, hf_reader, hf_operator;
