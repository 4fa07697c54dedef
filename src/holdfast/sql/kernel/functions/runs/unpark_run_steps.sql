-- Makes up to `batch` steps due again that were parked because their run was paused, and returns how many.
create or replace function holdfast.unpark_run_steps(run_id uuid, batch int)
returns int
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
  parked constant bigint[] := holdfast.lock_parked_steps(unpark_run_steps.run_id, unpark_run_steps.batch);
  queues text[];
begin
  with changed as (
    update holdfast.steps s
       set due_at = s.parked_due_at, parked_due_at = null, parked_for = null
     where s.id = any (parked)
    returning s.queue)
  select array_agg(distinct c.queue) into queues from changed c;
  perform holdfast.wake(queues);
  return cardinality(parked);
end
$$;
