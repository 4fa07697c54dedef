-- A tenant sees its own feeds and what belongs to them. Records have no tenant of their own: their feed has.
do $$
declare
  item text;
  place text;
begin
  foreach item in array array['ingest.known_feeds', 'ingest.starts', 'ingest.run_facts', 'ingest.partitions',
                              'ingest.feed_watermarks', 'ingest.quarantined', 'ingest.prices', 'ingest.event_log',
                              'ingest.payloads', 'ingest.sightings'] loop
    place := holdfast.face_name(item);
    continue when exists (select from pg_catalog.pg_policy p where p.polrelid = place::regclass);
    execute format('alter table %s enable row level security', place);
    execute format('alter table %s force row level security', place);
    execute format('create policy kernel_sees_all on %s to hf_owner using (true) with check (true)', place);
    execute format(
      case when item in ('ingest.payloads', 'ingest.sightings')
           then 'create policy own_tenants on %s for select to hf_producer, hf_worker, hf_reader, hf_operator '
                'using ((select ' || holdfast.face_name('ingest') || '.allowed_feeds()) is null '
                'or feed_id = any ((select ' || holdfast.face_name('ingest') || '.allowed_feeds())::int[]))'
           else 'create policy own_tenants on %s for select to hf_producer, hf_worker, hf_reader, hf_operator '
                'using ((select holdfast.allowed_tenants()) is null '
                'or tenant = any ((select holdfast.allowed_tenants())::text[]))' end, place);
  end loop;
end
$$;
grant select on ingest.known_feeds, ingest.starts, ingest.run_facts, ingest.partitions, ingest.feed_watermarks,
  ingest.quarantined, ingest.prices, ingest.event_log, ingest.payloads, ingest.sightings
  to hf_producer, hf_worker, hf_reader, hf_operator;
