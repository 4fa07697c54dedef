-- Returns the initial state of a machine, which must be one for that subject (run or step). Refuses a machine whose
-- rows only its face starts.
create or replace function holdfast.initial_state(machine text, subject text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  state text;
  starter text;
begin
  select min(s.state), min(m.started_by) into state, starter
    from holdfast.machine_states s join holdfast.machines m on m.machine = s.machine
   where s.machine = initial_state.machine and m.subject = initial_state.subject and s.is_initial;
  if starter is not null then  -- guard: face
    perform holdfast.refuse('RN005', format('a %s of %s cannot be started so', initial_state.subject,
                                            initial_state.machine),
                            format('start it with %s', starter), 'machine');
  end if;
  if state is null then
    perform holdfast.refuse('RN005', format('there is no machine %s for a %s', initial_state.machine,
                                            initial_state.subject),
                            'holdfast.machines lists them; a face brings its own', 'machine');
  end if;
  return state;
end
$$;
