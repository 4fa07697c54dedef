-- Cancels those of the picked steps whose run was cancelled while its million steps are still being moved in chunks, and
-- tells how many: they must not run.
create or replace function holdfast.drop_steps_of_ended_runs(picked bigint[], run_ids uuid[])
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ended constant uuid[] := array(
    select r.id from holdfast.runs r
     where r.id = any (drop_steps_of_ended_runs.run_ids) and r.finished_at is not null);
  moves holdfast.step_move[];
  dropped int;
begin
  if ended = '{}' then
    return 0;
  end if;
  select array_agg((s.id, null, 'cancelled', null, null, null, null)::holdfast.step_move)
    into moves
    from holdfast.steps s
   where s.id = any (drop_steps_of_ended_runs.picked) and s.run_id = any (ended);
  if moves is null then
    return 0;
  end if;
  select count(*) into dropped from holdfast.move_steps(moves);
  if dropped < cardinality(moves) then
    perform holdfast.set_aside(array(select m.step_id from unnest(moves) m), 'cancelled', holdfast.clock());
  end if;
  return cardinality(moves);
end
$$;
