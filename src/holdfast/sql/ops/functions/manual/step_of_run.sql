-- Returns the number of a run's step, under which the kernel knows it; no row if the login sees no such run.
create or replace function ops.step_of_run(run_id text)
returns setof bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select f.step_id from ops.run_facts f
   where f.run_id = step_of_run.run_id and f.step_id is not null
     and holdfast.matches_any(holdfast.allowed_tenants(), f.tenant);  -- guard: tenant
end
$$;
grant execute on function ops.step_of_run to hf_producer, hf_worker, hf_reader, hf_operator;
