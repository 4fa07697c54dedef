-- Runs as people list them: each with its approval, if it needed one, and its metadata as text.
create or replace view ops.run_list with (security_invoker = true) as
select f.run_id, f.step_id, f.project_id, f.env, f.env_id, f.kind, f.status, f.git_sha, f.git_ref, f.queued_by,
       f.claimed_by, f.queued_at, f.started_at, f.running_at, f.finished_at, f.expires_at, f.retry_of, f.rollback_of,
       f.idempotency_key, f.metadata::text as metadata, f.tenant,
       (select coalesce(a.decision, 'pending') from ops.run_approvals a where a.step_id = f.step_id) as approval
  from ops.run_facts f
 where f.step_id is not null and coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on ops.run_list to hf_producer, hf_worker, hf_reader, hf_operator;
