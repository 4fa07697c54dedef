-- The lease that steps of a kind get by its definition: the tenant's own, or everybody's where it has none.
create or replace function holdfast.lease_of(kind text, tenant text)
returns interval
language sql stable
begin atomic
  select k.lease from holdfast.kinds k
   where k.kind = lease_of.kind and k.tenant in (lease_of.tenant, '*')
   order by k.tenant = '*'
   limit 1;
end;
