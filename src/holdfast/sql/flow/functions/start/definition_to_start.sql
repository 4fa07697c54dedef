-- Returns the registered definition that a start by name takes. Without a version it is the one that was defined last.
-- A tenant's own definitions override the shared ones. Refuses a context that lacks what the definition requires.
create or replace function flow.definition_to_start(
  name text, context jsonb, namespace text, version text, tenant text)
returns flow.definitions
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  request constant jsonb := flow.checked_object('context', definition_to_start.context);
  definition flow.definitions;
  missing text;
begin
  select d.* into definition from flow.definitions d
   where d.namespace = definition_to_start.namespace and d.name = definition_to_start.name
     and d.tenant in (definition_to_start.tenant, '*')
     and holdfast.matches(definition_to_start.version, d.version)
   order by d.tenant = '*', d.defined_at desc
   limit 1;
  if definition.name is null then
    perform holdfast.refuse(
      'RN004', format('there is no flow %s%s in namespace %s', definition_to_start.name,
                      ' of version ' || definition_to_start.version, definition_to_start.namespace),
      coalesce('defined are: ' || (select string_agg(distinct concat_ws(' ', d.namespace, d.name, d.version), ', ')
                                     from flow.definitions d where d.tenant in (definition_to_start.tenant, '*')),
               'none is defined: start a worker that serves it'));
  end if;
  select min(r.field) into missing
    from jsonb_array_elements_text(coalesce(definition.context_schema -> 'required', '[]')) r (field)
   where not request ? r.field;
  if missing is not null then
    perform holdfast.refuse('RN005', format('the context of flow %s lacks %s', definition_to_start.name, missing),
                            'see context_schema of its definition', 'context');
  end if;
  return definition;
end
$$;
