-- Quarantines records that the caller's step, a partition or a batch that it holds, could not store or map. Call it in
-- the transaction that settles the step.
create or replace function ingest.quarantine_records(
  step_id bigint, lease_id bigint, stage text, keys text[], records text[], errors text[])
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  step holdfast.steps;
  facts ingest.run_facts;
begin
  select s.* into step from holdfast.steps s
   where s.id = quarantine_records.step_id and s.lease_id = quarantine_records.lease_id  -- guard: lease
     and s.machine in ('ingest.partition', 'ingest.consolidation')
     and holdfast.matches_any(holdfast.allowed_tenants(), s.tenant)
     for update;
  if step.id is null then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', quarantine_records.step_id,
                                            quarantine_records.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  select r.* into facts from ingest.run_facts r where r.run_id = step.run_id;
  perform ingest.add_quarantined(
    facts, (select p.partition_id from ingest.partitions p where p.step_id = step.id), quarantine_records.stage,
    quarantine_records.keys, quarantine_records.records, quarantine_records.errors, holdfast.clock());
end
$$;
grant execute on function ingest.quarantine_records to hf_worker;
