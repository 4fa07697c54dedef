-- Projects, and the repository whose pushes queue their runs.
create or replace view ops.projects with (security_invoker = true) as
select p.project_id, p.repository, p.tenant, p.created_at, p.created_by,
       (select count(*) from ops.known_environments e where e.tenant = p.tenant and e.project_id = p.project_id)
         as environments
  from ops.known_projects p
 where coalesce(p.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on ops.projects to hf_producer, hf_worker, hf_reader, hf_operator;
