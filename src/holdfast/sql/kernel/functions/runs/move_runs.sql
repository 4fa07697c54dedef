-- Fires one event on runs, with the columns of the state it leads to, and returns how many moved. A run whose machine
-- requires `started` first makes both moves.
create or replace function holdfast.move_runs(ids uuid[], event text, clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  moved int;
begin
  update holdfast.runs r
     set state = g.to_state, last_event = 'started', started_at = coalesce(r.started_at, move_runs.clock)
    from holdfast.machine_moves g, holdfast.machine_moves m
   where r.id = any (move_runs.ids)
     and g.machine = r.machine and g.from_state = r.state and g.event = 'started'
     and m.machine = r.machine and m.from_state = g.to_state and m.event = move_runs.event
     and not exists (select from holdfast.machine_moves d
                      where d.machine = r.machine and d.from_state = r.state and d.event = move_runs.event);
  update holdfast.runs r
     set state = m.to_state, last_event = m.event,
         finished_at = case when t.phase in ('over', 'open_or_over') then move_runs.clock end,
         started_at = case when m.event = 'reopened' then null else r.started_at end
    from holdfast.machine_moves m join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state
   where r.id = any (move_runs.ids)
     and m.machine = r.machine and m.from_state = r.state and m.event = move_runs.event;
  get diagnostics moved = row_count;
  return moved;
end
$$;
