-- Returns the tenants of the first list that are also in the second; null stands for all.
create or replace function holdfast.intersect_tenants(asked text[], allowed text[])
returns text[]
language sql immutable
begin atomic
  select case when intersect_tenants.allowed is null then intersect_tenants.asked
              else array(select unnest(intersect_tenants.asked) intersect select unnest(intersect_tenants.allowed)) end;
end;
