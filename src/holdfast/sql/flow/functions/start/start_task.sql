-- Starts a task of a flow by its latest registered definition, for plain SQL and for the command line. Without a
-- version it takes the one that was defined last. A tenant's own definitions override the shared ones. Returns the
-- task's id.
create or replace function flow.start_task(
  name text, context jsonb default '{}', namespace text default 'default',
    version text default null, key text default null,
  tenant text default 'default', skip text[] default '{}', about jsonb default '{}', key_for interval default null)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  definition constant flow.definitions := flow.definition_to_start(
    start_task.name, start_task.context, start_task.namespace, start_task.version, start_task.tenant);
begin
  return flow.initialize_task(definition.name, definition.steps, start_task.context, definition.namespace,
                              definition.version, start_task.key, start_task.tenant, start_task.skip, start_task.about,
                              start_task.key_for);
end
$$;
grant execute on function flow.start_task to hf_producer, hf_worker, hf_operator;
