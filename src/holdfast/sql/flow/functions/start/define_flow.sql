-- Defines a flow: its steps as a plan (holdfast.start_run), with their other properties. Limits and weights may name
-- fields of the context (shop:{shop}). A login for all tenants defines it for everybody, a login for some tenants for
-- those. A new definition replaces the previous one; existing runs keep their shape.
create or replace function flow.define_flow(
  name text, steps jsonb, namespace text default 'default', version text default '0.1.0', description text default null,
  context_schema jsonb default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  tenants constant text[] := holdfast.tenants_to_define(format('flow %s', define_flow.name));
begin
  perform holdfast.check_name('the name of a flow', coalesce(define_flow.name, ''));
  perform holdfast.check_name('namespace', define_flow.namespace);
  perform holdfast.check_name('version', define_flow.version);
  perform holdfast.check_plan(null, define_flow.steps);
  perform flow.check_limits(define_flow.steps);
  if define_flow.steps = '[]' then
    perform holdfast.refuse('RN005', format('flow %s has no steps', define_flow.name), 'add at least one step');
  end if;
  insert into flow.definitions as d (namespace, name, version, tenant, description, steps, context_schema, defined_at)
  select define_flow.namespace, define_flow.name, define_flow.version, t.tenant,
    define_flow.description, define_flow.steps,
         define_flow.context_schema, holdfast.clock()
    from unnest(tenants) t (tenant)
   order by t.tenant
  on conflict on constraint definitions_pkey do update
    set description = excluded.description, steps = excluded.steps, context_schema = excluded.context_schema,
        defined_at = excluded.defined_at
    -- Each worker defines its flows when it starts; only changes are written.
    where (d.description, d.steps, d.context_schema)
          is distinct from (excluded.description, excluded.steps, excluded.context_schema);
end
$$;
grant execute on function flow.define_flow to hf_worker, hf_operator;
