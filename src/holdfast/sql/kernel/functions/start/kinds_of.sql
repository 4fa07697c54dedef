-- Returns each kind as steps of `tenant` get it: by the tenant's own definition, or by the shared one. PostgreSQL
-- inlines it.
create or replace function holdfast.kinds_of(tenant text)
returns table (kind text, policy text, lease interval, queue text)
language sql stable
begin atomic
  select k.kind, k.policy, k.lease, k.queue
    from holdfast.kinds k
   where k.tenant = kinds_of.tenant
      or (k.tenant = '*' and not exists (
            select from holdfast.kinds o where o.kind = k.kind and o.tenant = kinds_of.tenant));
end;
