-- Starts the runs of picked steps that have not started, and returns the steps that may be claimed. Steps of a run that
-- has ended are cancelled: a cancelled run's million steps are moved in chunks, and must not run meanwhile. Steps of a
-- run that is paused or stopped are taken back and keep their state.
create or replace function holdfast.prepare_runs(pick holdfast.pick, clock timestamptz)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ended uuid[];
  halted uuid[];
  fresh uuid[];
  moves holdfast.step_move[];
  dropped bigint[];
  kept bigint[] := pick.ids;
begin
  select coalesce(array_agg(r.id) filter (where r.finished_at is not null and r.halt is null), '{}'),  -- guard: over
         array_agg(r.id) filter (where r.halt in ('paused', 'stopped')),  -- guard: halted
         array_agg(r.id) filter (where r.finished_at is null and r.started_at is null
                                   and coalesce(r.halt, 'first') = 'first')
    into ended, halted, fresh
    from holdfast.runs r
   where r.id = any (pick.run_ids);
  if ended <> '{}' or coalesce(halted, fresh) is not null then
    -- Runs are locked from here on: the claim waits for no more limits.
    perform set_config('holdfast.has_limits', 'yes', true);
  end if;
  if fresh is not null then
    update holdfast.runs r
       set state = m.to_state, last_event = 'started',
           started_at = greatest(prepare_runs.clock, r.queued_at)  -- guard: clock
      from holdfast.machine_moves m
     where r.id = any (fresh) and r.started_at is null and r.finished_at is null
       and m.machine = r.machine and m.from_state = r.state and m.event = 'started';
  end if;
  if halted is not null then
    dropped := array(select s.id from holdfast.steps s where s.id = any (kept) and s.run_id = any (halted));
    perform holdfast.close_runs(holdfast.halt_steps(halted, holdfast.haltable_steps(dropped)), prepare_runs.clock);
    kept := array(select u.id from unnest(kept) u (id) where u.id <> all (dropped));
  end if;
  if ended = '{}' then  -- guard: ended
    return kept;
  end if;
  select array_agg(s.id), array_agg((s.id, null, 'cancelled', null, null, null, null)::holdfast.step_move)
    into dropped, moves
    from holdfast.steps s
   where s.id = any (kept) and s.run_id = any (ended);
  perform from holdfast.move_steps(moves);
  perform holdfast.park_unmovable_due(dropped, 'cancelled', prepare_runs.clock);  -- if they cannot be cancelled
  return array(select u.id from unnest(kept) u (id) where u.id <> all (dropped));
end
$$;
