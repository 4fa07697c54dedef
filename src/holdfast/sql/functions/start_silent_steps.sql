-- Fires `started` on those of the steps whose machine wants that move before the one they are to make: a worker that
-- finished without a word in between.
create or replace function holdfast.start_silent_steps(moves holdfast.step_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.steps s
     set state = b.to_state, last_event = 'started'
    from (select v.step_id, v.lease_id, g.to_state
            from (select * from unnest(start_silent_steps.moves) order by step_id) v
            join holdfast.steps h on h.id = v.step_id and h.lease_id is not distinct from v.lease_id
            join holdfast.machine_moves g on g.machine = h.machine and g.from_state = h.state and g.event = 'started'
            join holdfast.machine_moves m on m.machine = g.machine and m.from_state = g.to_state and m.event = v.event
           where not exists (select from holdfast.machine_moves d
                              where d.machine = h.machine and d.from_state = h.state and d.event = v.event)) b
   where s.id = b.step_id and s.lease_id is not distinct from b.lease_id;
end
$$;
