-- Quarantines records of a run, each once, and counts them in the run.
create or replace function ingest.add_quarantined(
  facts ingest.run_facts, partition_id text, stage text, keys text[], records text[], errors text[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  added int;
begin
  insert into ingest.quarantined (run_id, feed, tenant, partition_id, stage, key, record, error, at)
  select facts.run_id, facts.feed, facts.tenant, add_quarantined.partition_id, add_quarantined.stage, u.key,
         left(u.record, 10000), coalesce(left(u.error, 2000), 'no reason'), add_quarantined.clock
    from unnest(add_quarantined.keys, add_quarantined.records, add_quarantined.errors) u (key, record, error)
  on conflict do nothing;
  get diagnostics added = row_count;
  update ingest.run_facts r set quarantined = r.quarantined + added where r.run_id = facts.run_id and added > 0;
end
$$;
