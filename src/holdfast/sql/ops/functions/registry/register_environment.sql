-- Makes a project and its environment if they are not there, and returns the environment. Its type is taken from its
-- name, where that is one. With its first environment a tenant gets the schedule that sweeps stale runs.
create or replace function ops.register_environment(tenant text, project_id text, name text, actor text)
returns ops.known_environments
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  slug constant text := trim('-' from left(lower(regexp_replace(
    register_environment.name, '[^[:alnum:]]+', '-', 'g')), 40));
  place ops.known_environments;
begin
  if not exists (select from ops.known_environments e where e.tenant = register_environment.tenant) then
    perform holdfast.define_schedule('ops-monitor', 'monitor', 'ops', every => interval '5 minutes', missed => 'one',
                                     tenant => register_environment.tenant);
  end if;
  insert into ops.known_projects (tenant, project_id, created_at, created_by)
  values (register_environment.tenant, register_environment.project_id, clock, register_environment.actor)
  on conflict (tenant, project_id) do nothing;
  insert into ops.known_environments (env_id, tenant, project_id, name, type, created_at, created_by)
  values (format('env-%s-%s', slug, left(md5(concat_ws(
            E'\n', register_environment.tenant, register_environment.project_id, register_environment.name)), 10)),
          register_environment.tenant, register_environment.project_id, register_environment.name,
          case lower(register_environment.name)
            when 'dev' then 'dev' when 'development' then 'dev' when 'staging' then 'staging'
            when 'prod' then 'prod' when 'production' then 'prod' end,
          clock, register_environment.actor)
  on conflict (tenant, project_id, name) do nothing;
  select e.* into strict place from ops.known_environments e
   where e.tenant = register_environment.tenant and e.project_id = register_environment.project_id
     and e.name = register_environment.name;
  return place;
end
$$;
