-- Returns those of the requested tenants that the login may act for; null means all.
create or replace function holdfast.narrow_tenants(asked text[])
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  if narrow_tenants.asked is null or allowed is null then
    return coalesce(narrow_tenants.asked, allowed);
  end if;
  return array(select unnest(narrow_tenants.asked) intersect select unnest(allowed));
end
$$;
