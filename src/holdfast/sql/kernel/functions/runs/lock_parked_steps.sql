-- Locks up to `batch` steps that are parked because their run is paused, in the order of their ids, and returns them.
create or replace function holdfast.lock_parked_steps(run_id uuid, batch int)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  place constant text := 'run ' || lock_parked_steps.run_id;
begin
  return array(
    select s.id from holdfast.steps s
     where s.parked_for = place and s.id = any (array(
             select p.id
               from holdfast.queues q
              cross join lateral (select o.id from holdfast.steps o
                                   where o.queue = q.queue and o.parked_for = place
                                   limit lock_parked_steps.batch) p
              limit lock_parked_steps.batch))
     order by s.id for update);
end
$$;
