-- Extends leases that `worker` still holds, counted from now, and returns them; the missing ones are lost. It does not
-- wait for a step that another transaction has locked, because all other leases would run out meanwhile: that step
-- counts as held and is extended by the next call. With `step_ids` (in the order of `lease_ids`) steps are found by
-- primary key, without them among all held steps.
create or replace function holdfast.renew_leases(
  worker text, lease_ids bigint[], lease interval default null, step_ids bigint[] default null)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  held constant bigint[] := coalesce(renew_leases.step_ids, array(
    select s.id from holdfast.steps s
     where s.lease_until is not null and s.lease_owner = renew_leases.worker
       and s.lease_id = any (renew_leases.lease_ids)));
  free bigint[];
begin
  perform holdfast.check_claim(renew_leases.worker, 1, renew_leases.lease);
  update holdfast.workers w
     set seen_at = clock
   where w.worker = renew_leases.worker and w.seen_at < clock - interval '10 s'
     and holdfast.is_own_worker(w.tenants, allowed);
  perform holdfast.set_actor('worker', renew_leases.worker);
  free := array(
    select s.id from holdfast.steps s
     where s.id = any (held)
       and s.lease_id = any (renew_leases.lease_ids)  -- guard: lease
       and s.lease_owner = renew_leases.worker  -- guard: owner
       -- Not `>= clock`: a lease that ran out but was not yet taken from the worker is still its own.
       and holdfast.matches_any(allowed, s.tenant)  -- guard: tenant
       for no key update skip locked);
  return query
  update holdfast.steps s
     set lease_until = clock + coalesce(
           renew_leases.lease,
           holdfast.lease_of(s.kind, s.tenant), interval '300 s')
   where s.id = any (free)
  returning s.lease_id;
  if cardinality(free) < cardinality(renew_leases.lease_ids) then
    return query
    select s.lease_id from holdfast.steps s
     where s.id = any (held) and s.id <> all (free) and s.lease_owner = renew_leases.worker
       and s.lease_id = any (renew_leases.lease_ids)
       and holdfast.matches_any(allowed, s.tenant);
  end if;
  perform holdfast.set_actor();
end
$$;
grant execute on function holdfast.renew_leases to hf_worker;
