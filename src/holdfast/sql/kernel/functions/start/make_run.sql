-- Makes a run with its planned steps (as in start_run), under the run `of_run` if there is one. The caller has called
-- set_actor.
create or replace function holdfast.make_run(
  id uuid, machine text, name text, step_machine text, steps jsonb, input jsonb, tenant text, of_run uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  begins constant text := holdfast.initial_state(make_run.machine, 'run');
  clock constant timestamptz := holdfast.clock();
begin
  insert into holdfast.runs (id, machine, name, state, tenant, of_run, created_at, queued_at, window_size, input)
  select make_run.id, make_run.machine, make_run.name, begins, make_run.tenant, make_run.of_run, clock,
         case when t.phase = 'open' then clock end, c.window_size, coalesce(make_run.input, '{}')
    from holdfast.machines c
    join holdfast.machine_states t on t.machine = c.machine and t.state = begins
   where c.machine = make_run.machine;
  if make_run.steps is distinct from '[]' then  -- a null plan goes on to add_steps, which refuses it
    perform holdfast.add_steps(make_run.id, make_run.step_machine, make_run.steps);
  end if;
end
$$;
