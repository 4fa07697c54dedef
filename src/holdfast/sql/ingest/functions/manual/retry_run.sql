-- Retries a run or a partition by its id, as `holdfast runs retry` does: failed partitions, or a failed consolidation.
create or replace function ingest.retry_run(id text, reason text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  part ingest.partitions;
  of_run uuid;
begin
  if retry_run.id ~ '^[0-9]{1,18}$' then
    select p.* into part from ingest.partitions p where p.step_id = retry_run.id::bigint;
    of_run := coalesce(part.run_id, (select s.run_id from holdfast.steps s where s.id = retry_run.id::bigint));
  else
    of_run := retry_run.id::uuid;
  end if;
  if part.run_id is not null then
    perform ingest.retry_partitions(of_run, array[part.partition_id], retry_run.reason);
  elsif exists (select from ingest.run_facts r where r.run_id = of_run and r.failed_workers > 0 and not r.forced) then
    perform ingest.retry_partitions(of_run, null, retry_run.reason);
  else
    perform ingest.resume_consolidation(of_run, retry_run.reason);
  end if;
end
$$;
grant execute on function ingest.retry_run to hf_operator;
