-- Cancels a run, also one that is still being planned, and returns its state.
create or replace function ingest.cancel_run(run_id uuid, reason text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  planned constant bigint := (
    select b.step_id from ingest.starts b
     where b.run_id = cancel_run.run_id and not exists (
             select from ingest.run_facts r where r.run_id = b.run_id));
begin
  return holdfast.act_on(coalesce(planned::text, cancel_run.run_id::text), 'cancelled', cancel_run.reason);
end
$$;
grant execute on function ingest.cancel_run to hf_producer, hf_operator;
