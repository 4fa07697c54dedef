-- Each kind as steps of `tenant` get it: by the tenant's own definition, or by everybody's where it has none. It is put
-- into a query as it stands.
create or replace function holdfast.kinds_of(tenant text)
returns table (kind text, policy text, queue text)
language sql stable
begin atomic
  select distinct on (k.kind) k.kind, k.policy, k.queue
    from holdfast.kinds k
   where k.tenant in (kinds_of.tenant, '*')
   order by k.kind, k.tenant = '*';
end;
