-- Removes up to `batch` quarantined records that are older than 30 days, and as many records that were deleted 30 days
-- ago, and returns how many. A record that comes back is new.
create or replace function ingest.age_rows(batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  since constant timestamptz := holdfast.clock() - interval '30 days';
  feed_ids int[];
  keys text[];
  aged int;
begin
  delete from ingest.quarantined q
   where q.id = any (array(select o.id from ingest.quarantined o where o.at < since
                            order by o.at limit age_rows.batch));
  get diagnostics aged = row_count;
  select array_agg(o.feed_id), array_agg(o.key) into feed_ids, keys
    from (select p.feed_id, p.key from ingest.payloads p
            join ingest.sightings s on s.feed_id = p.feed_id and s.key = p.key and s.consolidated
           where p.deleted and p.changed_at < since
           limit age_rows.batch) o;
  -- The payload first, as a page does, and only if it is still deleted: a page may have brought it back meanwhile.
  with gone as (
    delete from ingest.payloads p using unnest(feed_ids, keys) u (feed_id, key)
     where p.feed_id = u.feed_id and p.key = u.key
       and p.deleted and p.changed_at < since  -- guard: aged
    returning p.feed_id, p.key)
  select array_agg(g.feed_id), array_agg(g.key) into feed_ids, keys from gone g;
  delete from ingest.sightings s using unnest(feed_ids, keys) u (feed_id, key)
   where s.feed_id = u.feed_id and s.key = u.key;
  return aged + coalesce(cardinality(keys), 0);
end
$$;
