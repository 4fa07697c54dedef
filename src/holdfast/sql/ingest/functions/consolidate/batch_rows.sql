-- Returns the records of the range that the caller's step consolidates, except for those that are consolidated.
create or replace function ingest.batch_rows(step_id bigint, lease_id bigint)
returns table (key text, payload text, updated_at timestamptz, deleted boolean, target_key text, pricing text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan  -- a range of the key, whatever the statistics say
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  held record;
  feed int;
  run bigint;
  rules text;
begin
  held := ingest.held_consolidation(batch_rows.step_id, batch_rows.lease_id);
  feed := (held.feed).id;
  run := (held.facts).no;
  rules := (held.facts).pricing::text;
  return query
  select s.key, p.payload::text, p.updated_at, p.deleted, s.target_key, rules
    from ingest.sightings s
    join ingest.payloads p on p.feed_id = feed and p.key = s.key
   where s.feed_id = feed and not s.consolidated and s.seen_no = run
     and s.key >= ((held.step).input #>> '{batch,first}') collate "C"
     and s.key <= ((held.step).input #>> '{batch,last}') collate "C"
   order by s.key;
end
$$;
grant execute on function ingest.batch_rows to hf_worker;
