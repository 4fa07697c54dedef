-- Cancels stale runs: claimed for more than five minutes without an event, or held under a lease that ran out. Also
-- cancels what waited too long, for a worker or for an approval. Returns their ids, and why. A run that reports at the
-- same moment is left alone. `p_tenant` limits it to one tenant (null: all that the login may act for).
create or replace function ops.sweep_runs(p_tenant text default null)
returns table (run_id text, reason text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.narrow_tenants(case when p_tenant is not null then array[p_tenant] end);
  moves constant holdfast.step_move[] := array(
    select (s.id, s.lease_id, 'expired', null, null, jsonb_build_object(
              'type', 'LeaseExpired', 'message', ops.stale_reason(s.state, s.claimed_at, clock)), null
           )::holdfast.step_move
      from holdfast.steps s
     where s.id = any (array(
             select f.step_id from ops.run_facts f
              where f.status in ('claimed', 'running') and holdfast.matches_any(allowed, f.tenant)))
       and ((s.state = 'claimed' and s.claimed_at < clock - interval '5 minutes')  -- guard: stale
            or s.lease_until < clock)
     order by s.id
       for update skip locked);
  stale bigint[];
begin
  if moves <> '{}' then
    perform holdfast.set_actor('system', 'monitor');
    stale := array(select m.step_id from holdfast.move_steps(moves, clock) m);
    perform holdfast.set_actor();
    return query
    select f.run_id, f.metadata ->> 'reason' from ops.run_facts f where f.step_id = any (stale) order by f.step_id;
  end if;
  return query select e.run_id, e.reason from ops.expire_runs(clock, allowed) e;
end
$$;
grant execute on function ops.sweep_runs to hf_worker, hf_operator;
