-- Moves the next steps of a run that is being cancelled, reopened, stopped or resumed, about `batch` of them, and
-- returns how many moved, or 1 if none did and more are left. After the last step the run is no longer `moving`, and is
-- closed if nothing is left of it. It continues after the last step of the chunk before it, whoever moved that. The
-- caller has the run's lock (run_lock) and has called set_actor. Steps are locked first, the run's row last.
create or replace function holdfast.move_run_steps(run_id uuid, batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  run holdfast.runs;
  seen bigint[] := '{}';
  size int;
  moved int := 0;
  is_last boolean;
begin
  select r.* into strict run from holdfast.runs r where r.id = move_run_steps.run_id;
  if run.moving is null then
    return 0;  -- the last chunk was moved while this waited
  end if;
  if run.moving = 'resumed' then
    moved := holdfast.unpark_run_steps(run.id, move_run_steps.batch);
    is_last := moved < move_run_steps.batch;
  elsif run.moving = 'stopped' and holdfast.is_only_held(run) then
    is_last := true;  -- the rest of its steps needs no change
  else
    -- Of a stopped run few steps change: reading them is cheap.
    size := move_run_steps.batch * case when run.moving = 'stopped' then 10 else 1 end;
    seen := array(select n.step_id from holdfast.run_steps n
                   where n.run_id = run.id and n.step_id > run.moved_until  -- guard: resumes
                   order by n.step_id
                   limit size);
    moved := holdfast.move_chunk_of(run, seen, clock);
    if moved < 0 then
      return 1;  -- one was claimed or settled in between: read these again
    end if;
    is_last := cardinality(seen) < size;
  end if;
  update holdfast.runs r
     set moving = case when not is_last then r.moving end,
         moved_until = case when is_last then 0 else coalesce(seen[cardinality(seen)], 0) end
   where r.id = run.id;
  if is_last then
    perform holdfast.end_move(run.id, clock);
  end if;
  return greatest(moved, (not is_last)::int);
end
$$;
