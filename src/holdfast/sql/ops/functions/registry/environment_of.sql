-- Returns the environment of a project by its name. First use registers both, unless the tenant is strict.
create or replace function ops.environment_of(tenant text, project_id text, name text, actor text)
returns ops.known_environments
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  place ops.known_environments;
begin
  select e.* into place from ops.known_environments e
   where e.tenant = environment_of.tenant and e.project_id = environment_of.project_id and e.name = environment_of.name;
  if not found then
    if (select s.strict_projects from ops.settings s
         where s.tenant in (environment_of.tenant, '*') order by s.tenant = '*' limit 1) then  -- guard: strict
      perform holdfast.refuse(
        'RN004', format('there is no environment %s of project %s', environment_of.name, environment_of.project_id),
        'define it with ops.define_environment: strict_projects is on', 'p_project_id');
    end if;
    place := ops.register_environment(
      environment_of.tenant, environment_of.project_id, environment_of.name, environment_of.actor);
  end if;
  return place;
end
$$;
