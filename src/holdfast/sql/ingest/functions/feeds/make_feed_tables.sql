-- Makes the tables and the view of a feed's records, unless they are there. The one place where a name that a caller
-- gave becomes the name of an object; define_feed and the constraints of known_feeds have checked it.
create or replace function ingest.make_feed_tables(feed ingest.known_feeds)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  place constant text := holdfast.face_name('ingest');
  parent text;
  child text;
begin
  foreach parent in array array['payloads', 'sightings'] loop
    child := format('%s_%s', parent, feed.feed);
    continue when exists (select from pg_tables t where t.schemaname = place and t.tablename = child);
    execute format('create table %I.%I partition of %I.%I for values in (%s)%s', place, child, place, parent, feed.id,
                   case parent when 'sightings' then ' with (fillfactor = 70)' else '' end);
    execute format('alter table %I.%I enable row level security', place, child);
    execute format('alter table %I.%I force row level security', place, child);
    execute format('create policy kernel_sees_all on %I.%I to hf_owner using (true) with check (true)', place, child);
  end loop;
  execute format('create index if not exists %I on %I.%I (key) where not consolidated',
                 'unconsolidated_' || feed.feed, place, 'sightings_' || feed.feed);
  execute format('create index if not exists %I on %I.%I (changed_at) where deleted',
                 'deleted_' || feed.feed, place, 'payloads_' || feed.feed);
  if not exists (select from pg_views v where v.schemaname = place and v.viewname = feed.raw_name) then
    execute format(
      'create view %1$I.%2$I with (security_invoker = true) as '
      'select s.key, p.payload, p.updated_at, r.run_id, n.run_id as seen_run_id, s.consolidated, p.deleted '
      'from %1$I.sightings s join %1$I.payloads p on p.feed_id = %3$s and p.key = s.key '
      'left join %1$I.run_facts r on r.no = s.run_no left join %1$I.run_facts n on n.no = s.seen_no '
      'where s.feed_id = %3$s', place, feed.raw_name, feed.id);
    execute format('grant select on %I.%I to hf_producer, hf_worker, hf_reader, hf_operator', place, feed.raw_name);
  end if;
end
$$;
