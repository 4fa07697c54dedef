-- Takes up to `batch` steps of a run that is being cancelled or reopened through the same event, and tells how many. When
-- none is left the run is no longer `moving`, and is closed if nothing in it is live.
create or replace function holdfast.move_run_steps(run_id uuid, batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  wished constant text := (select r.moving from holdfast.runs r where r.id = move_run_steps.run_id);
  moves holdfast.step_move[];
  moved int;
begin
  select array_agg((s.id, s.lease_id, wished, clock, null, null, null)::holdfast.step_move)
    into moves
    from (select h.id, h.lease_id
            from holdfast.run_steps r
           cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
             select s.* from holdfast.steps s where s.id = r.step_id offset 0) h
            join holdfast.machine_moves m on m.machine = h.machine and m.from_state = h.state and m.event = wished
           where r.run_id = move_run_steps.run_id and (h.finished_at is not null) = (wished = 'reopened')
           order by r.step_id
           limit move_run_steps.batch) s;
  moves := coalesce(moves, '{}');
  select count(*) into moved from holdfast.move_steps(moves);
  -- One that was claimed or settled in between is still to be moved.
  if moved = cardinality(moves) and moved < move_run_steps.batch then
    update holdfast.runs r set moving = null where r.id = move_run_steps.run_id;
    perform holdfast.close_runs(
      array(select r.id from holdfast.runs r
             where r.id = move_run_steps.run_id and r.live = 0 and r.finished_at is null), clock);
  end if;
  return moved;
end
$$;
