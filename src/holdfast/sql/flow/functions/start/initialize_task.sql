-- Starts a task of a flow with its steps, all or nothing, and returns its id. `steps` is the plan (holdfast.start_run),
-- `skip` names skippable steps that are not to be done, and `about` may have tags, initiator, source_system and reason.
-- A context or `about` of null is empty.
create or replace function flow.initialize_task(
  name text, steps jsonb, context jsonb default '{}', namespace text default 'default', version text default '0.1.0',
  key text default null, tenant text default 'default', skip text[] default '{}', about jsonb default '{}',
  key_for interval default null)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task_id uuid;
begin
  perform holdfast.set_actor('api', session_user::text);
  task_id := flow.begin_task(
    initialize_task.name, initialize_task.steps, initialize_task.context, initialize_task.namespace,
    initialize_task.version, initialize_task.key, initialize_task.tenant, initialize_task.skip, initialize_task.about,
    initialize_task.key_for);
  perform holdfast.set_actor();
  return task_id;
end
$$;
grant execute on function flow.initialize_task to hf_producer, hf_worker, hf_operator;
