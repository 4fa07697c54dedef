-- Fires one event on runs, with the columns of the state it leads to, and returns how many moved. A run whose machine
-- requires `started` first makes both moves. A time is never before the one that it follows, so that a clock that steps
-- back fails no settle. A run that is back in an open state has not started: a claim starts it again. One that is
-- reopened into a held state keeps when it started.
create or replace function holdfast.move_runs(ids uuid[], event text, clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  moved int;
begin
  update holdfast.runs r
     set state = g.to_state, last_event = 'started',
         started_at = coalesce(r.started_at, greatest(move_runs.clock, r.queued_at))
    from holdfast.machine_moves g, holdfast.machine_moves m
   where r.id = any (move_runs.ids)
     and g.machine = r.machine and g.from_state = r.state and g.event = 'started'
     and m.machine = r.machine and m.from_state = g.to_state and m.event = move_runs.event
     and not exists (select from holdfast.machine_moves d
                      where d.machine = r.machine and d.from_state = r.state and d.event = move_runs.event);
  update holdfast.runs r
     set state = m.to_state, last_event = m.event,
         finished_at = case when t.phase in ('over', 'open_or_over')
                            then greatest(move_runs.clock, r.started_at, r.queued_at) end,  -- guard: clock
         started_at = case when t.phase = 'open' then null  -- the next claim starts it
                           when m.event = 'reopened' and t.phase <> 'held' then null  -- guard: started
                           when m.event = 'reopened' then coalesce(r.started_at, greatest(move_runs.clock, r.queued_at))
                           else r.started_at end,
         queued_at = case when m.event = 'queued' then coalesce(r.queued_at, move_runs.clock) else r.queued_at end,
         to_admit = case when t.phase in ('over', 'open_or_over') then 0 else r.to_admit end,
         halt = case when holdfast.keeps_halt(r.halt, m.event, t.phase) then r.halt end,
         halted_at = case when holdfast.keeps_halt(r.halt, m.event, t.phase) then r.halted_at end,
         halted_by = case when holdfast.keeps_halt(r.halt, m.event, t.phase) then r.halted_by end,
         halt_reason = case when holdfast.keeps_halt(r.halt, m.event, t.phase) then r.halt_reason end
    from holdfast.machine_moves m join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state
   where r.id = any (move_runs.ids)
     and m.machine = r.machine and m.from_state = r.state and m.event = move_runs.event;
  get diagnostics moved = row_count;
  return moved;
end
$$;
