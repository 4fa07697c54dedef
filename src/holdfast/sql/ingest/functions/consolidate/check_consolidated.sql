-- Returns what speaks against ending the consolidation of a run under a step that the caller holds: records that are
-- neither consolidated nor quarantined, counted without skipping locked ones, or more quarantined ones than the feed
-- allows. `problem` is null if nothing does; `deletes` says whether absent records are to be deleted.
create or replace function ingest.check_consolidated(step_id bigint, lease_id bigint)
returns table (problem text, deletes boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held record;
  unmarked bigint;
  allowed int;
begin
  held := ingest.held_consolidation(check_consolidated.step_id, check_consolidated.lease_id);
  allowed := coalesce(((held.feed).settings ->> 'max_rejects')::int, 0);
  select count(*) into unmarked
    from ingest.sightings s
   where s.feed_id = (held.feed).id and not s.consolidated and s.seen_no = (held.facts).no  -- guard: left
     and not exists (select from ingest.quarantined q where q.run_id = (held.facts).run_id and q.key = s.key);
  return query select
    case when unmarked > 0 then format('%s records are not consolidated', unmarked)
         when (held.facts).quarantined > allowed then  -- guard: rejects
           format('%s records are quarantined, max_rejects is %s', (held.facts).quarantined, allowed) end,
    (held.facts).run_type = 'full' and not (held.facts).forced and (held.facts).failed_workers = 0;
end
$$;
grant execute on function ingest.check_consolidated to hf_worker;
