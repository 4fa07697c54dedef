-- Returns the initial state of a machine, which must be one for that subject (run or step).
create or replace function holdfast.initial_state(machine text, subject text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  state constant text := (
    select min(s.state) from holdfast.machine_states s join holdfast.machines m on m.machine = s.machine
     where s.machine = initial_state.machine and m.subject = initial_state.subject and s.is_initial);
begin
  if state is null then
    perform holdfast.refuse('RN005', format('there is no machine %s for a %s', initial_state.machine,
                                            initial_state.subject),
                            'holdfast.machines lists them; a face brings its own', 'machine');
  end if;
  return state;
end
$$;
