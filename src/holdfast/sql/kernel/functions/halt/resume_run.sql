-- Resumes a paused run, or one of which only the first steps were admitted. Resuming a run that is not paused changes
-- nothing. `actor` names the person that the login acts for. Returns the run's state.
create or replace function holdfast.resume_run(id text, reason text default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := holdfast.run_to_halt(resume_run.id, resume_run.reason, resume_run.actor);
begin
  return holdfast.unhalt_run(run.id, resume_run.reason, resume_run.actor);
end
$$;
grant execute on function holdfast.resume_run to hf_producer, hf_operator;
