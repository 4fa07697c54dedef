-- Returns the tenants that the login defines things for: '*' (everybody) for a login for all tenants, else its own.
create or replace function holdfast.tenants_to_define(what text)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  tenants constant text[] := coalesce(holdfast.allowed_tenants(), '{*}');
begin
  if tenants = '{}' then
    perform holdfast.refuse('RN009', format('%s may not act for any tenant and cannot define %s',
                                            session_user, tenants_to_define.what),
                            'an owner of the database can add a tenant to holdfast.role_tenants');
  end if;
  return tenants;
end
$$;
