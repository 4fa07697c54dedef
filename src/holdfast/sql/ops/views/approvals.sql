-- Approvals that runs wait or waited for. `decision` is pending, approved, rejected, expired, or cancelled with its
-- run.
create or replace view ops.approvals with (security_invoker = true) as
select f.run_id, coalesce(a.decision, 'pending') as decision, f.project_id, f.env_id, f.env, f.kind, f.git_sha,
       f.git_ref, a.requested_by, a.requested_at, a.expires_at, a.decided_by, a.decided_at, a.reason, a.login, a.tenant
  from ops.run_approvals a
  join ops.run_facts f on f.step_id = a.step_id
 where coalesce(a.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ops.approvals to hf_producer, hf_worker, hf_reader, hf_operator;
