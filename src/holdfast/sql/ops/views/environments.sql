-- Environments of projects: which pushes they take, whether their runs wait for an approval, and what a new push does
-- to older runs of the same ref.
create or replace view ops.environments with (security_invoker = true) as
select e.env_id, e.project_id, e.name, e.type, e.branch_pattern, e.needs_approval, e.on_push, e.kind, e.concurrency,
       e.queue_ttl, e.tenant, e.created_at, e.created_by
  from ops.known_environments e
 where coalesce(e.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ops.environments to hf_producer, hf_worker, hf_reader, hf_operator;
