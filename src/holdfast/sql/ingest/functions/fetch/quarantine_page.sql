-- Quarantines the records of a page that cannot be stored.
create or replace function ingest.quarantine_page(
  facts ingest.run_facts, part ingest.partitions, keys text[], payloads jsonb[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform ingest.add_quarantined(
    facts, part.partition_id, 'fetch', array_agg(left(u.key, 1024)), array_agg(left(u.payload::text, 10000)),
    array_agg(case when coalesce(u.key, '') = '' then 'the record has no key'
                   when octet_length(u.key) > 1024 then format('its key has %s bytes, at most 1024 are allowed',
                                                               octet_length(u.key))
                   else 'the record is missing or has more than 1048576 bytes' end),
    quarantine_page.clock)
    from unnest(quarantine_page.keys, quarantine_page.payloads) u (key, payload)
   where not ingest.is_storable(u.key, u.payload)
  having count(*) > 0;
end
$$;
