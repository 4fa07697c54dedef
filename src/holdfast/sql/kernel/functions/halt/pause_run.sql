-- Pauses a run: none of its steps is claimed until resume_run, and what is held runs to its end. Pausing a paused run
-- changes nothing. `actor` names the person that the login acts for. Returns the run's state.
create or replace function holdfast.pause_run(id text, reason text default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := holdfast.run_to_halt(pause_run.id, pause_run.reason, pause_run.actor);
begin
  return holdfast.halt_run(run.id, 'paused', pause_run.reason, pause_run.actor);
end
$$;
grant execute on function holdfast.pause_run to hf_producer, hf_operator;
