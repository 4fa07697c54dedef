-- Refuses a login that may not act for all tenants.
create or replace function holdfast.check_all_tenants(what text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if holdfast.allowed_tenants() is not null then
    perform holdfast.refuse('RN009', format('%s requires a login for all tenants, but %s is limited to some',
                                            check_all_tenants.what, session_user),
                            'an owner of the database can add tenant * to holdfast.role_tenants; the setting '
                            'holdfast.tenants narrows a transaction');
  end if;
end
$$;
