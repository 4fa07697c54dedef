-- Starts a run of `machine` with its plan: an array of steps, each with its kind and, where they apply, name, input,
-- after (the names of the steps it waits for), queue, priority, policy, due_at, limits and weight. The steps follow
-- `step_machine`. Stage a large plan instead (stage_steps, take_staged). `key` and `key_for` work as for a task.
-- Returns the run's id.
create or replace function holdfast.start_run(
  machine text, name text, step_machine text, steps jsonb default '[]', input jsonb default '{}', key text default null,
  tenant text default 'default', of_run uuid default null, key_for interval default null)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run_id uuid;
begin
  perform holdfast.set_actor('api', session_user::text);
  run_id := holdfast.begin_run(start_run.machine, start_run.name, start_run.step_machine, start_run.steps,
                               start_run.input, start_run.key, start_run.tenant, start_run.of_run, start_run.key_for);
  perform holdfast.set_actor();
  return run_id;
end
$$;
grant execute on function holdfast.start_run to hf_producer, hf_worker, hf_operator;
