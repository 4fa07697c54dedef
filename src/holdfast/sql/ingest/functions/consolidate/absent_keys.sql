-- Returns the next `batch` records after `after` that a full run did not bring and that are not deleted.
create or replace function ingest.absent_keys(step_id bigint, lease_id bigint, after text, batch int)
returns table (key text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held record;
begin
  held := ingest.held_consolidation(absent_keys.step_id, absent_keys.lease_id);
  return query
  select s.key from ingest.sightings s
    join ingest.payloads p on p.feed_id = (held.feed).id and p.key = s.key and not p.deleted
   where s.feed_id = (held.feed).id and s.seen_no <> (held.facts).no
     and (absent_keys.after is null or s.key > absent_keys.after collate "C")
   order by s.key limit absent_keys.batch;
end
$$;
grant execute on function ingest.absent_keys to hf_worker;
