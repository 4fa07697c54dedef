-- Fires `started` on those of the steps whose machine requires that move before the one they are to make, because their
-- worker finished without a report in between. Few machines have that move: the steps of others are read once and
-- together.
create or replace function holdfast.start_silent_steps(moves holdfast.step_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  claimed constant bigint[] := array(
    select s.id
      from holdfast.steps s
     where s.id = any (array(select v.step_id from unnest(start_silent_steps.moves) v))
       and s.machine || ' ' || s.state = any (array(
             select g.machine || ' ' || g.from_state from holdfast.machine_moves g where g.event = 'started')));
  silent bigint[];
begin
  if claimed = '{}' then
    return;
  end if;
  silent := array(
    select v.step_id
      from unnest(start_silent_steps.moves) v
     cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
       select h.machine, h.state from holdfast.steps h
        where h.id = v.step_id and h.lease_id is not distinct from v.lease_id offset 0) s
      join holdfast.machine_moves g on g.machine = s.machine and g.from_state = s.state and g.event = 'started'
      join holdfast.machine_moves m on m.machine = g.machine and m.from_state = g.to_state and m.event = v.event
     where v.step_id = any (claimed)
       and not exists (select from holdfast.machine_moves d
                        where d.machine = s.machine and d.from_state = s.state and d.event = v.event)
     order by v.step_id);
  if silent <> '{}' then
    update holdfast.steps s
       set state = g.to_state, last_event = 'started'
      from holdfast.machine_moves g
     where s.id = any (silent) and g.machine = s.machine and g.from_state = s.state and g.event = 'started';
  end if;
end
$$;
