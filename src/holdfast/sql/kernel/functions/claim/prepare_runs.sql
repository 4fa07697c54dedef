-- Starts the runs of picked steps that have not started, and returns the steps that may be claimed. Steps of a run that
-- has ended are cancelled: a cancelled run's million steps are moved in chunks, and must not run meanwhile.
create or replace function holdfast.prepare_runs(pick holdfast.pick, clock timestamptz)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ended uuid[];
  fresh uuid[];
  moves holdfast.step_move[];
  dropped bigint[];
begin
  select coalesce(array_agg(r.id) filter (where r.finished_at is not null), '{}'),
         array_agg(r.id) filter (where r.finished_at is null and r.started_at is null)
    into ended, fresh
    from holdfast.runs r
   where r.id = any (pick.run_ids);
  if fresh is not null then
    update holdfast.runs r
       set state = m.to_state, last_event = 'started', started_at = prepare_runs.clock
      from holdfast.machine_moves m
     where r.id = any (fresh) and r.started_at is null and r.finished_at is null
       and m.machine = r.machine and m.from_state = r.state and m.event = 'started';
  end if;
  if ended = '{}' then  -- guard: ended
    return pick.ids;
  end if;
  select array_agg(s.id), array_agg((s.id, null, 'cancelled', null, null, null, null)::holdfast.step_move)
    into dropped, moves
    from holdfast.steps s
   where s.id = any (pick.ids) and s.run_id = any (ended);
  perform from holdfast.move_steps(moves);
  perform holdfast.park_unmovable_due(dropped, 'cancelled', prepare_runs.clock);  -- if they cannot be cancelled
  return array(select u.id from unnest(pick.ids) u (id) where u.id <> all (dropped));
end
$$;
