-- Of steps and the leases they were held under, in the same order, returns the leases that are still held and last for
-- at least that long. The others are lost, or about to run out: renew_leases tells which. Only reads.
create or replace function holdfast.leases_left(step_ids bigint[], lease_ids bigint[], at_least interval)
returns setof bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- by primary key, whatever the statistics say
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  until constant timestamptz := holdfast.clock() + leases_left.at_least;
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select u.lease_id
    from unnest(leases_left.step_ids, leases_left.lease_ids) u (step_id, lease_id)
   cross join lateral (
     select h.lease_id, h.lease_until, h.tenant from holdfast.steps h where h.id = u.step_id offset 0) s
   where s.lease_id = u.lease_id  -- guard: lease
     and s.lease_until >= until  -- guard: until
     and holdfast.matches_any(allowed, s.tenant);  -- guard: tenant
end
$$;
grant execute on function holdfast.leases_left to hf_worker;
