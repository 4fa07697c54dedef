-- Counts what the steps' UPDATE trigger saw, one element per limit: steps that came under a lease or lost it, and steps
-- that were parked on the limit or left its queue. `endings` says how steps lost their leases, for breakers (null:
-- there are none). States are locked in the order of their ids.
create or replace function holdfast.count_limits(
  ids bigint[], held int[], parked int[], endings holdfast.limit_change[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = on
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  awaited boolean;
begin
  with counted as (
    update holdfast.limit_states s
       set held = s.held + c.held,  -- guard: held
           parked = s.parked + c.parked
      from (select * from unnest(count_limits.ids, count_limits.held, count_limits.parked)
                       as u (limit_id, held, parked)
             order by u.limit_id) c  -- whichever side is hashed, states are locked in the order of their ids
     where s.id = any (count_limits.ids) and s.id = c.limit_id
    returning s.parked > 0 or s.wake_at is not null as is_awaited)  -- guard: awaited; as it is under the lock
  select bool_or(u.is_awaited) into awaited from counted u;
  if count_limits.endings is not null then
    perform holdfast.judge_breakers(count_limits.endings, count_limits.clock);
  end if;
  if awaited then
    perform holdfast.refresh_limits(count_limits.ids, count_limits.clock);
  end if;
end
$$;
