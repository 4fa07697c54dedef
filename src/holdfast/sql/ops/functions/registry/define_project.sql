-- Makes a project, or changes the repository whose pushes queue its runs (owner/name; null: none).
create or replace function ops.define_project(
  p_project_id text, p_repository text default null, p_tenant text default 'default')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  other text;
begin
  perform holdfast.check_tenant(p_tenant);
  perform holdfast.check_name('project_id', coalesce(p_project_id, ''));
  perform holdfast.check_name('repository', p_repository);
  other := (select p.project_id from ops.known_projects p
             where p.tenant = p_tenant and lower(p.repository) = lower(p_repository) and p.project_id <> p_project_id);
  if other is not null then
    perform holdfast.refuse('RN003', format('repository %s belongs to project %s', p_repository, other),
                            'one repository selects one project', 'p_repository');
  end if;
  insert into ops.known_projects (tenant, project_id, repository, created_at, created_by)
  values (p_tenant, p_project_id, p_repository, holdfast.clock(), session_user)
  on conflict (tenant, project_id) do update set repository = excluded.repository;
end
$$;
grant execute on function ops.define_project to hf_operator;
