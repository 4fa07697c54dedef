-- Makes up to 5000 steps due again that were parked until a worker serves them, now that a worker of the queue does. It
-- goes from one parked kind and tenant to the next, because a condition on lists of them could be evaluated for every
-- parked step. It assumes that all steps of a kind have the same machine.
create or replace function holdfast.unpark_served(queue text, kinds text[], tenants text[], machine text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  served constant bigint[] := array(
    with recursive parked as (
      (select p.kind, p.tenant, p.machine
         from holdfast.steps p
        where p.queue = unpark_served.queue and p.parked_for = 'handler'
        order by p.kind, p.tenant
        limit 1)
      union all
      select n.kind, n.tenant, n.machine
        from parked b
       cross join lateral (
         select p.kind, p.tenant, p.machine
           from holdfast.steps p
          where p.queue = unpark_served.queue and p.parked_for = 'handler' and (p.kind, p.tenant) > (b.kind, b.tenant)
          order by p.kind, p.tenant
          limit 1) n)
    select s.id
      from parked b
     cross join lateral (
       select p.id
         from holdfast.steps p
        where p.queue = unpark_served.queue and p.parked_for = 'handler' and p.kind = b.kind and p.tenant = b.tenant
        limit 5000
          for update skip locked) s
     where holdfast.matches_any(unpark_served.kinds, b.kind)
       and holdfast.matches_any(unpark_served.tenants, b.tenant)
       and holdfast.matches(unpark_served.machine, b.machine)
     limit 5000);
begin
  if served <> '{}' then
    update holdfast.steps s
       set due_at = s.parked_due_at, parked_due_at = null, parked_for = null
     where s.id = any (served);
  end if;
end
$$;
