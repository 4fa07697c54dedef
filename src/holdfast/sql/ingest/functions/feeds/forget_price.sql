-- Removes a pricing rule of a feed by its priority, and returns whether there was one.
create or replace function ingest.forget_price(feed text, priority int)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  known constant ingest.known_feeds := ingest.feed_to_use(forget_price.feed);
begin
  delete from ingest.prices p where p.feed = known.feed and p.priority = forget_price.priority;
  return found;
end
$$;
grant execute on function ingest.forget_price to hf_operator;
