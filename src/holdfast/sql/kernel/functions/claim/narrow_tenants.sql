-- Returns those of the requested tenants that the login may act for; null means all. PostgreSQL inlines it.
create or replace function holdfast.narrow_tenants(asked text[])
returns text[]
language sql stable
begin atomic
  select case when narrow_tenants.asked is null then holdfast.allowed_tenants()
              else holdfast.intersect_tenants(narrow_tenants.asked, holdfast.allowed_tenants()) end;
end;
