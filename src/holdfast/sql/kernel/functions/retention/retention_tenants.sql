-- The tenants that a change of a rule is for: the one that is named, or with null all that the login defines things
-- for. '*' is for all tenants, and so is a rule of the journal or of ticks: only a login for all tenants may change
-- these.
create or replace function holdfast.retention_tenants(what text, tenant text)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if retention_tenants.what <> 'runs' then
    if coalesce(retention_tenants.tenant, '*') <> '*' then
      perform holdfast.refuse('RN005', format('the rule of the %s is one for all tenants, got tenant %s',
                                              retention_tenants.what, retention_tenants.tenant),
                              'leave the tenant out', 'tenant');
    end if;
    perform holdfast.check_all_tenants(format('the retention of the %s', retention_tenants.what));
    return array['*'];
  end if;
  return holdfast.limit_tenants(retention_tenants.tenant, 'a rule of retention');
end
$$;
