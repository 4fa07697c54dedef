-- Says what a flow looks like: its steps as a plan (holdfast.start_run) and whatever else they say of themselves. Said again,
-- it replaces what was said; runs that have begun keep their shape.
create or replace function flow.define_flow(
  name text, steps jsonb, namespace text default 'default', version text default '0.1.0', description text default null,
  context_schema jsonb default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_plan(null, define_flow.steps);
  if define_flow.steps = '[]' then
    perform holdfast.refuse('RN005', format('flow %s has no steps', define_flow.name), 'a flow has at least one');
  end if;
  insert into flow.definitions as d (namespace, name, version, description, steps, context_schema, defined_at)
  values (define_flow.namespace, define_flow.name, define_flow.version, define_flow.description, define_flow.steps,
          define_flow.context_schema, holdfast.clock())
  on conflict on constraint definitions_pkey do update
    set description = excluded.description, steps = excluded.steps, context_schema = excluded.context_schema,
        defined_at = excluded.defined_at
    -- Each worker says it at its start; only what is new is written.
    where (d.description, d.steps, d.context_schema)
          is distinct from (excluded.description, excluded.steps, excluded.context_schema);
end
$$;
