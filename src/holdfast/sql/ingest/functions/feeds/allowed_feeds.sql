-- Returns the ids of the feeds that the login may see; null means all. For the policies of the tables of records.
create or replace function ingest.allowed_feeds()
returns int[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return case when allowed is not null
              then array(select f.id from ingest.known_feeds f where f.tenant = any (allowed)) end;
end
$$;
grant execute on function ingest.allowed_feeds to hf_producer, hf_worker, hf_reader, hf_operator;
