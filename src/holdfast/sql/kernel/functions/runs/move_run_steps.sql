-- Moves the next `batch` steps of a run that is being cancelled or reopened by the same event, where they have that
-- move, and returns how many moved. After the last step the run is no longer `moving`, and is closed if it has no live
-- step.
create or replace function holdfast.move_run_steps(run_id uuid, batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  run holdfast.runs;
  seen bigint[];
  moves holdfast.step_move[];
  moved int;
begin
  select r.* into strict run from holdfast.runs r where r.id = move_run_steps.run_id;
  seen := array(select r.step_id from holdfast.run_steps r
                 where r.run_id = run.id and r.step_id > run.moved_until
                 order by r.step_id
                 limit move_run_steps.batch);
  select coalesce(array_agg((s.id, s.lease_id, run.moving, clock, null, null, null)::holdfast.step_move), '{}')
    into moves
    from unnest(seen) u (id)
   cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
     select h.* from holdfast.steps h where h.id = u.id offset 0) s
    join holdfast.machine_moves m on m.machine = s.machine and m.from_state = s.state and m.event = run.moving
   where (s.finished_at is not null) = (run.moving = 'reopened');
  select count(*) into moved from holdfast.move_steps(moves);
  if moved < cardinality(moves) then
    return moved;  -- one was claimed or settled in between: read these again
  end if;
  if cardinality(seen) = move_run_steps.batch then
    update holdfast.runs r set moved_until = seen[move_run_steps.batch] where r.id = run.id;
    return moved;
  end if;
  update holdfast.runs r set moving = null, moved_until = 0 where r.id = run.id;
  perform holdfast.close_runs(
    array(select r.id from holdfast.runs r where r.id = run.id and r.live = 0 and r.finished_at is null), clock);
  return moved;
end
$$;
