-- Starts a task of a flow by its latest registered definition, for plain SQL and for the command line. Without a
-- version it takes the one that was defined last. A tenant's own definitions override the shared ones. Returns the
-- task's id.
create or replace function flow.start_task(
  name text, context jsonb default '{}', namespace text default 'default',
    version text default null, key text default null,
  tenant text default 'default', skip text[] default '{}', about jsonb default '{}')
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  request constant jsonb := flow.checked_object('context', start_task.context);
  definition flow.definitions;
  missing text;
begin
  select d.* into definition from flow.definitions d
   where d.namespace = start_task.namespace and d.name = start_task.name and d.tenant in (start_task.tenant, '*')
     and holdfast.matches(start_task.version, d.version)
   order by d.tenant = '*', d.defined_at desc
   limit 1;
  if definition.name is null then
    perform holdfast.refuse(
      'RN004', format('there is no flow %s%s in namespace %s', start_task.name,
                      ' of version ' || start_task.version, start_task.namespace),
      coalesce('defined are: ' || (select string_agg(distinct concat_ws(' ', d.namespace, d.name, d.version), ', ')
                                     from flow.definitions d where d.tenant in (start_task.tenant, '*')),
               'none is defined: start a worker that serves it'));
  end if;
  select min(r.field) into missing
    from jsonb_array_elements_text(coalesce(definition.context_schema -> 'required', '[]')) r (field)
   where not request ? r.field;
  if missing is not null then
    perform holdfast.refuse('RN005', format('the context of flow %s lacks %s', start_task.name, missing),
                            'see context_schema of its definition', 'context');
  end if;
  return flow.initialize_task(definition.name, definition.steps, request, definition.namespace, definition.version,
                              start_task.key, start_task.tenant, start_task.skip, start_task.about);
end
$$;
grant execute on function flow.start_task to hf_producer, hf_worker, hf_operator;
