-- The state in which rows of a machine begin.
create or replace function holdfast.initial_state(machine text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  state constant text := (select min(s.state) from holdfast.machine_states s
                           where s.machine = initial_state.machine and s.is_initial);
begin
  if state is null then
    perform holdfast.refuse('RN005', format('there is no machine %s', initial_state.machine),
                            'holdfast.machines lists them; a face brings its own');
  end if;
  return state;
end
$$;
