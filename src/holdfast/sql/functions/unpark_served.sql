-- Puts up to 5000 steps back that were parked until somebody serves them, now that a worker of the queue does.
create or replace function holdfast.unpark_served(queue text, kinds text[], tenants text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan  -- a null leaves its condition out, and the index of parked steps answers the rest
as $$
declare
  served constant bigint[] := array(
    select p.id from holdfast.steps p
     where p.queue = unpark_served.queue and p.parked_for = 'handler'
       and (unpark_served.kinds is null or p.kind = any (unpark_served.kinds))
       and (unpark_served.tenants is null or p.tenant = any (unpark_served.tenants))
     limit 5000
       for update skip locked);
begin
  if served <> '{}' then
    update holdfast.steps s
       set due_at = s.parked_due_at, parked_due_at = null, parked_for = null
     where s.id = any (served);
  end if;
end
$$;
