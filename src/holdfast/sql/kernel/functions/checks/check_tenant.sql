-- Refuses a tenant that the login may not act for.
create or replace function holdfast.check_tenant(tenant text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  if not holdfast.is_name(check_tenant.tenant) then  -- checked here too: a call costs more
    perform holdfast.check_name('tenant', check_tenant.tenant);
  end if;
  if not holdfast.matches_any(allowed, check_tenant.tenant) then  -- guard: tenant
    perform holdfast.refuse('RN009', format('%s may not act for tenant %s', session_user, check_tenant.tenant),
                            'an owner of the database can add it to holdfast.role_tenants; '
                            'the setting holdfast.tenants narrows a transaction');
  end if;
end
$$;
