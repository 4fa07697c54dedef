-- Of steps and the leases they were held under, in the same order, returns the leases that are lost, each with its
-- step's present state (null if the step is gone or the login may not see it). Only reads.
create or replace function holdfast.lost_leases(step_ids bigint[], lease_ids bigint[])
returns table (lease_id bigint, state text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- by primary key, whatever the statistics say
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  if cardinality(lost_leases.step_ids) is distinct from cardinality(lost_leases.lease_ids) then
    perform holdfast.refuse('RN005', 'step_ids and lease_ids must have the same length',
                            'pass one step_id per lease_id');
  end if;
  return query
  select u.lease_id, s.state
    from unnest(lost_leases.step_ids, lost_leases.lease_ids) u (step_id, lease_id)
    left join holdfast.steps s on s.id = u.step_id and holdfast.matches_any(allowed, s.tenant)
   where s.id is null or s.lease_id is distinct from u.lease_id;
end
$$;
grant execute on function holdfast.lost_leases to hf_worker;
