-- Returns the run with that id, if the login may act for its tenant, and refuses an invalid reason or actor.
create or replace function holdfast.run_to_change(id text, reason text, actor text)
returns holdfast.runs
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  run holdfast.runs;
begin
  perform holdfast.check_reason(run_to_change.reason);
  perform holdfast.check_name('actor', run_to_change.actor);
  if run_to_change.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select r.* into run from holdfast.runs r
     where r.id = run_to_change.id::uuid
       and holdfast.matches_any(allowed, r.tenant);  -- guard: tenant
  end if;
  if run.id is null then
    perform holdfast.refuse_pruned(run_to_change.id);
    perform holdfast.refuse('RN004', format('there is no run %s', run_to_change.id),
                            'find the id with `holdfast runs list`', run_to_change.id);
  end if;
  return run;
end
$$;
