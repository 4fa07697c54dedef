-- Returns the number of a run's step, under which the kernel knows it, also if retention has removed the run; no row if
-- the login sees no such run.
create or replace function ops.step_of_run(run_id text)
returns setof bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select f.step_id from ops.run_facts f
   where f.run_id = step_of_run.run_id and f.step_id is not null
     and holdfast.matches_any(allowed, f.tenant);  -- guard: tenant
  if not found then
    return query
    select p.step_id from ops.pruned_runs p
     where p.run_id = step_of_run.run_id
       and holdfast.matches_any(allowed, p.tenant);  -- guard: pruned-tenant
  end if;
end
$$;
grant execute on function ops.step_of_run to hf_producer, hf_worker, hf_reader, hf_operator;
