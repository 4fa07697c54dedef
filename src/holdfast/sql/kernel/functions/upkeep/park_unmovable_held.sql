-- Parks held steps whose lease ran out but whose machine has no move for that, with a note. Otherwise each sweep would
-- meet them again, and a batch of them would hide the rest. A person moves them by hand.
create or replace function holdfast.park_unmovable_held(moves holdfast.step_move[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with aside as (
    update holdfast.steps s
       set lease_until = park_unmovable_held.clock + interval '100 years',  -- not infinity: Python cannot represent it
           parked_for = 'move'
      from unnest(park_unmovable_held.moves) m
     where s.id = m.step_id and s.lease_id = m.lease_id
    returning s.*, m.event as missing)
  insert into holdfast.notes (at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  select park_unmovable_held.clock, a.tenant, a.id, a.run_id, a.attempt, a.lease_id, 'error',
         format('machine %s has no move %s from state %s: the step is parked', a.machine, a.missing, a.state),
         jsonb_build_object('machine', a.machine, 'state', a.state, 'event', a.missing)
    from aside a;
end
$$;
