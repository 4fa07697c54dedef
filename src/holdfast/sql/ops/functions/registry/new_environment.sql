-- Registers an environment that a run names for the first time, unless the tenant is strict.
create or replace function ops.new_environment(tenant text, project_id text, name text, actor text)
returns ops.known_environments
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if (select s.strict_projects from ops.settings s
       where s.tenant in (new_environment.tenant, '*') order by s.tenant = '*' limit 1) then  -- guard: strict
    perform holdfast.refuse(
      'RN004', format('there is no environment %s of project %s', new_environment.name, new_environment.project_id),
      'define it with ops.define_environment: strict_projects is on', 'p_project_id');
  end if;
  return ops.register_environment(
    new_environment.tenant, new_environment.project_id, new_environment.name, new_environment.actor);
end
$$;
