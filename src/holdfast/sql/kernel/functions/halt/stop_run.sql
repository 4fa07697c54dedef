-- Stops a run: none of its steps is claimed any more, what is held runs to its end, and then the run is closed by its
-- counts. Steps that were not tried keep their state, and a retry of the run admits them. Stopping a stopped run
-- changes nothing. `actor` names the person that the login acts for. Returns the run's state.
create or replace function holdfast.stop_run(id text, reason text default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := holdfast.run_to_halt(stop_run.id, stop_run.reason, stop_run.actor);
begin
  return holdfast.halt_run(run.id, 'stopped', stop_run.reason, stop_run.actor);
end
$$;
grant execute on function holdfast.stop_run to hf_producer, hf_operator;
