-- Takes up to `batch` steps of all tenants from workers whose lease ran out, the oldest leases first.
create or replace function holdfast.expire_leases(batch int, clock timestamptz)
returns setof holdfast.settled_step
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
begin
  perform holdfast.check_claim('rescue', expire_leases.batch, null);
  return query
  select e.* from holdfast.expire_steps(
    array(select s.id from holdfast.steps s
           where s.lease_until < expire_leases.clock  -- guard: lease
           order by s.lease_until
           limit expire_leases.batch
             for update skip locked),
    expire_leases.clock) e;
end
$$;
