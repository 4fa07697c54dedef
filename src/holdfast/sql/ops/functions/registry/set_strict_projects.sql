-- Says whether runs of projects and environments that nobody defined are refused (true), or register them (false). With
-- tenant '*' for all tenants that say nothing themselves.
create or replace function ops.set_strict_projects(p_is_strict boolean, p_tenant text default '*')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
begin
  if p_is_strict is null then
    perform holdfast.refuse('RN005', 'strict_projects must be true or false', 'name one of them', 'p_is_strict');
  end if;
  if p_tenant = '*' then
    perform holdfast.check_all_tenants('strict_projects for all tenants');
  else
    perform holdfast.check_tenant(p_tenant);
  end if;
  insert into ops.settings (tenant, strict_projects) values (p_tenant, p_is_strict)
  on conflict (tenant) do update set strict_projects = excluded.strict_projects;
end
$$;
grant execute on function ops.set_strict_projects to hf_operator;
