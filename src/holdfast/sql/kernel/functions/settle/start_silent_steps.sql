-- Fires `started` on those of the steps whose machine requires that move before the one they are to make, because their
-- worker finished without a report in between.
create or replace function holdfast.start_silent_steps(moves holdfast.step_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  silent constant bigint[] := array(
    select v.step_id
      from unnest(start_silent_steps.moves) v
     cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
       select h.machine, h.state from holdfast.steps h
        where h.id = v.step_id and h.lease_id is not distinct from v.lease_id offset 0) s
      join holdfast.machine_moves g on g.machine = s.machine and g.from_state = s.state and g.event = 'started'
      join holdfast.machine_moves m on m.machine = g.machine and m.from_state = g.to_state and m.event = v.event
     where not exists (select from holdfast.machine_moves d
                        where d.machine = s.machine and d.from_state = s.state and d.event = v.event)
     order by v.step_id);
begin
  if silent <> '{}' then
    update holdfast.steps s
       set state = g.to_state, last_event = 'started'
      from holdfast.machine_moves g
     where s.id = any (silent) and g.machine = s.machine and g.from_state = s.state and g.event = 'started';
  end if;
end
$$;
