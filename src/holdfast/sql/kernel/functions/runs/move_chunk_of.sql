-- Moves those of the steps of a run that have to follow it: a cancelled run's steps are cancelled, a reopened run's
-- failed steps are reopened and those that were not admitted become due, a stopped run's steps are no longer due.
-- Returns how many moved, or -1 if one changed in between and the same steps are to be read again.
create or replace function holdfast.move_chunk_of(run holdfast.runs, ids bigint[], clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  moves holdfast.step_move[];
  moved int;
begin
  if run.moving = 'stopped' then
    perform holdfast.halt_steps(array[run.id], holdfast.lock_admitted(move_chunk_of.ids));
    return 0;
  end if;
  select coalesce(array_agg((s.id, s.lease_id, run.moving, move_chunk_of.clock, null, null, null)::holdfast.step_move
                            order by s.id), '{}')
    into moves
    from unnest(move_chunk_of.ids) u (id)
   cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
     select h.* from holdfast.steps h where h.id = u.id offset 0) s
    join holdfast.machine_moves m on m.machine = s.machine and m.from_state = s.state and m.event = run.moving
   where (s.finished_at is not null) = (run.moving = 'reopened');
  select count(*) into moved from holdfast.move_steps(moves);
  if moved < cardinality(moves) then
    return -1;
  end if;
  if run.moving = 'reopened' then
    moved := moved + holdfast.admit_untried(run, move_chunk_of.ids, move_chunk_of.clock);
  end if;
  return moved;
end
$$;
