-- The tenants whose rules a call about a limit is for: the one that is named, or with null all that the login defines
-- things for. '*' is the rule for all tenants, which only a login for all of them may touch.
create or replace function holdfast.limit_tenants(tenant text, what text)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if limit_tenants.tenant is null then
    return holdfast.tenants_to_define(limit_tenants.what);
  end if;
  if limit_tenants.tenant = '*' then
    perform holdfast.check_all_tenants(limit_tenants.what);
  else
    perform holdfast.check_tenant(limit_tenants.tenant);  -- guard: tenant
  end if;
  return array[limit_tenants.tenant];
end
$$;
