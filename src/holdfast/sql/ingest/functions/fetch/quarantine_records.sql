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
  step := ingest.held_step(quarantine_records.step_id, quarantine_records.lease_id,
                           '{ingest.partition,ingest.consolidation}');
  select r.* into facts from ingest.run_facts r where r.run_id = step.run_id;
  perform ingest.add_quarantined(
    facts, (select p.partition_id from ingest.partitions p where p.step_id = step.id), quarantine_records.stage,
    quarantine_records.keys, quarantine_records.records, quarantine_records.errors, holdfast.clock());
end
$$;
grant execute on function ingest.quarantine_records to hf_worker;
