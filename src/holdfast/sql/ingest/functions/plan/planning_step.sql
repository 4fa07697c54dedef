-- Returns the number of the task that plans a run, null once the run is created. Sees what its caller may see.
create or replace function ingest.planning_step(run_id uuid)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select b.step_id from ingest.starts b
           where b.run_id = planning_step.run_id and holdfast.matches_any(holdfast.allowed_tenants(), b.tenant)
             and not exists (select from ingest.run_facts r where r.run_id = b.run_id));
end
$$;
grant execute on function ingest.planning_step to hf_producer, hf_worker, hf_reader, hf_operator;
