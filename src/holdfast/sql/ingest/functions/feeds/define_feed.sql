-- Defines a feed, as a worker that serves it does when it connects: its settings, its tenant, and the name of the view
-- of its records, raw_<feed> by default. Makes the tables of its records the first time.
create or replace function ingest.define_feed(
  feed text, settings jsonb default '{}', raw_name text default null, tenant text default 'default')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  view_name constant text := coalesce(define_feed.raw_name, 'raw_' || define_feed.feed);
  known ingest.known_feeds;
begin
  if coalesce(define_feed.feed, '') !~ '^[a-z][a-z0-9_]{0,40}$' then  -- guard: identifier
    perform holdfast.refuse(
      'RN005', format('feed must match [a-z][a-z0-9_]{0,40}, got %s', left(define_feed.feed, 100)),
      'use lower-case letters, digits and underscores', 'feed');
  end if;
  if view_name !~ '^raw_[a-z0-9_]{1,50}$' then
    perform holdfast.refuse('RN005', format('raw_name must match raw_[a-z0-9_]{1,50}, got %s', left(view_name, 100)),
                            'use a name such as raw_orders', 'raw_name');
  end if;
  if jsonb_typeof(define_feed.settings) is distinct from 'object' then
    perform holdfast.refuse('RN005', 'settings must be an object', '{"page_size": 30}', 'settings');
  end if;
  perform holdfast.check_size('settings', define_feed.settings);
  perform holdfast.check_tenant(define_feed.tenant);
  select f.* into known from ingest.known_feeds f where f.feed = define_feed.feed;
  if known.tenant <> define_feed.tenant then
    perform holdfast.refuse('RN009', format('feed %s belongs to tenant %s', known.feed, known.tenant),
                            'use another name for the feed', 'feed');
  end if;
  -- Each worker defines its feeds when it starts; only changes are written.
  if (known.settings, known.raw_name) is not distinct from (define_feed.settings, view_name) then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('ingest.define_feed', 0));  -- one at a time makes tables
  insert into ingest.known_feeds as f (feed, tenant, raw_name, settings, defined_at)
  values (define_feed.feed, define_feed.tenant, view_name, define_feed.settings, holdfast.clock())
  on conflict on constraint known_feeds_pkey do update
    set raw_name = excluded.raw_name, settings = excluded.settings, defined_at = excluded.defined_at
    where f.tenant = excluded.tenant
  returning f.* into known;
  perform ingest.make_feed_tables(known);
end
$$;
grant execute on function ingest.define_feed to hf_worker, hf_operator;
