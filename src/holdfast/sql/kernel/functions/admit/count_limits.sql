-- Counts what the steps' UPDATE trigger saw: steps that came under a lease or lost it, and steps that were parked on a
-- limit or left its queue. A breaker counts how the steps ended. States are locked in the order of their ids.
create or replace function holdfast.count_limits(changes holdfast.limit_change[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = on
set enable_mergejoin = off
set enable_seqscan = off
set jit = off
as $$
declare
  ids constant bigint[] := array(select distinct c.limit_id from unnest(count_limits.changes) c order by c.limit_id);
begin
  if ids = '{}' then
    return;
  end if;
  perform from holdfast.limit_states s
    where s.id = any (ids) order by s.id for update;
  update holdfast.limit_states s
     set held = s.held + c.held,  -- guard: held
         parked = s.parked + c.parked
    from (select u.limit_id, sum(u.held) as held, sum(u.parked) as parked
            from unnest(count_limits.changes) u group by u.limit_id) c
   where s.id = c.limit_id and (c.held <> 0 or c.parked <> 0);
  if exists (select from unnest(count_limits.changes) c where c.held < 0)
     and exists (select from holdfast.limits r where r.breaker_after is not null) then
    perform holdfast.judge_breakers(count_limits.changes, count_limits.clock);
  end if;
  perform holdfast.refresh_limits(ids, count_limits.clock);
end
$$;
