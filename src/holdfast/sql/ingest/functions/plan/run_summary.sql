-- Returns what became of a run, for its handle. Sees what its caller may see.
create or replace function ingest.run_summary(run_id uuid)
returns table (feed text, run_type text, records bigint, quarantined int, deleted int, forced boolean,
               watermark_before timestamptz, watermark_after timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select r.feed, r.run_type, r.records, r.quarantined, r.deleted, r.forced, r.watermark_before, r.watermark_after
    from ingest.run_facts r
   where r.run_id = run_summary.run_id and holdfast.matches_any(holdfast.allowed_tenants(), r.tenant);
end
$$;
grant execute on function ingest.run_summary to hf_producer, hf_worker, hf_reader, hf_operator;
