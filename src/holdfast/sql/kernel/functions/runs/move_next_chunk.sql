-- Moves the next chunk of about `batch` steps of one run that was cancelled, reopened, stopped or resumed, and returns
-- how many moved; 0 if no run is left that nobody else is moving.
create or replace function holdfast.move_next_chunk(batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  run record;
  moved int;
begin
  for run in
    select r.id, r.moving from holdfast.runs r where r.moving is not null order by r.id limit 10
  loop
    continue when not pg_try_advisory_xact_lock(holdfast.run_lock(run.id));  -- guard: one-mover
    perform holdfast.set_actor('system', 'upkeep', 'the run was ' || run.moving);
    moved := holdfast.move_run_steps(run.id, move_next_chunk.batch);
    perform holdfast.set_actor();
    return moved;  -- one run per call: locks are held briefly
  end loop;
  return 0;
end
$$;
