-- Returns the lease that the definition of a kind gives to its steps.
create or replace function holdfast.lease_of(kind text, tenant text)
returns interval
language sql stable
begin atomic
  select k.lease from holdfast.kinds_of(lease_of.tenant) k where k.kind = lease_of.kind;
end;
