-- Runs in the words of the document. `started_at` is when a run was claimed, `running_at` when its worker first
-- reported.
create or replace view ops.runs with (security_invoker = true) as
select f.run_id, f.project_id, f.env_id, f.git_sha, f.git_ref, f.status, f.claimed_by, f.queued_at, f.started_at,
       f.finished_at, f.queued_at as created_at, f.updated_at, f.metadata, f.idempotency_key,
       f.running_at, f.kind, f.tenant, f.retry_of, f.rollback_of, f.env, f.queued_by, f.expires_at, f.step_id
  from ops.run_facts f
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
-- Writes are granted so that they reach the trigger, whose error names the function to call.
grant select, insert, update, delete on ops.runs to hf_producer, hf_worker, hf_reader, hf_operator;
