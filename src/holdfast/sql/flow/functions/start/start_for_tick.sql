-- Starts the run of a schedule's tick by the flow's latest registered definition, with the options namespace, version,
-- skip and about, and returns its id. The caller has called set_actor.
create or replace function flow.start_for_tick(target text, input jsonb, options jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  definition constant flow.definitions := flow.definition_to_start(
    start_for_tick.target, start_for_tick.input, coalesce(start_for_tick.options ->> 'namespace', 'default'),
    start_for_tick.options ->> 'version', start_for_tick.tenant);
begin
  perform holdfast.refuse_options('flow', start_for_tick.options, '{namespace,version,skip,about}');
  return array[flow.begin_task(
    definition.name, definition.steps, start_for_tick.input, definition.namespace, definition.version, null,
    start_for_tick.tenant, array(select jsonb_array_elements_text(coalesce(start_for_tick.options -> 'skip', '[]'))),
    start_for_tick.options -> 'about')::text];
end
$$;
