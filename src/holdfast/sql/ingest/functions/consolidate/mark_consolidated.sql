-- Marks records of the caller's range as consolidated and returns how many. `target_keys` are their keys in the target,
-- null where that is the record's own. Call it in the transaction that writes the target and settles the step.
create or replace function ingest.mark_consolidated(
  step_id bigint, lease_id bigint, keys text[], target_keys text[] default null)
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan  -- by key, whatever the statistics say
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  held record;
  feed int;
  run bigint;
  marked int;
begin
  held := ingest.held_consolidation(mark_consolidated.step_id, mark_consolidated.lease_id);
  feed := (held.feed).id;
  run := (held.facts).no;
  update ingest.sightings s
     set consolidated = true, target_key = u.target_key
    from unnest(mark_consolidated.keys, mark_consolidated.target_keys) u (key, target_key)
   where s.feed_id = feed and s.key = u.key collate "C" and s.seen_no = run and not s.consolidated;
  get diagnostics marked = row_count;
  return marked;
end
$$;
grant execute on function ingest.mark_consolidated to hf_worker;
