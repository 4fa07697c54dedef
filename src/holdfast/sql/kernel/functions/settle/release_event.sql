-- The event of a step that its worker releases: `cancelled` if its machine has no `released` move, but that one.
create or replace function holdfast.release_event(step holdfast.steps)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (select m.event from holdfast.machine_moves m
      where m.machine = step.machine and m.from_state = step.state and m.event in ('released', 'cancelled')
      order by m.event desc limit 1),
    'released');
end
$$;
