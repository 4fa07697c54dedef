-- Finds a feed of the login's tenants and locks it: what starts or changes runs of one feed happens one after the
-- other.
create or replace function ingest.feed_to_use(feed text)
returns ingest.known_feeds
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  known ingest.known_feeds;
begin
  select f.* into known from ingest.known_feeds f
   where f.feed = feed_to_use.feed and holdfast.matches_any(allowed, f.tenant)
     for update;
  if known.feed is null then
    perform holdfast.refuse('RN004', format('there is no feed %s', left(feed_to_use.feed, 100)),
                            'ingest.feeds lists them; a worker defines a feed when it connects', 'feed');
  end if;
  return known;
end
$$;
