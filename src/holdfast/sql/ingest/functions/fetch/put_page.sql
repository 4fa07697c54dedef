-- Stores the records of a page of a partition that the caller holds, and returns how many of them this walk of the
-- partition had not brought yet. Of a key that is twice in the page, the last wins. A record that comes again
-- unchanged rewrites only its narrow row, and belongs to the run that saw it last if no run has consolidated it. A
-- record without a key, or with one over 1 KiB, and one over 1 MiB are quarantined. Call it in the transaction that
-- settles the page, with continue and the next cursor {"offset", "read", "page", "round"}, or done and the result
-- {"records"}; called twice it stores nothing twice.
create or replace function ingest.put_page(
  step_id bigint, lease_id bigint, keys text[], payloads jsonb[], updated_at timestamptz[] default null,
  deleted boolean[] default null)
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan  -- there is one plan, whatever the size of the page and of the table
set enable_nestloop = off  -- the page and what it changed are joined by hash, however few rows are expected
set enable_mergejoin = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  held record;
  feed int;
  run bigint;
  round smallint;
  fresh int;
begin
  if cardinality(put_page.keys) is distinct from cardinality(put_page.payloads)
     or cardinality(put_page.updated_at) <> cardinality(put_page.keys)
     or cardinality(put_page.deleted) <> cardinality(put_page.keys) then
    perform holdfast.refuse('RN005', 'keys, payloads, updated_at and deleted must have the same number of elements',
                            'updated_at and deleted may be null', 'keys');
  end if;
  held := ingest.held_partition(put_page.step_id, put_page.lease_id);
  feed := (held.feed).id;
  run := (held.facts).no;
  round := coalesce(((held.step).cursor ->> 'round')::int, 0) + 10 * coalesce(((held.step).cursor ->> 'moved')::int, 0);
  if exists (select from unnest(put_page.keys, put_page.payloads) u (key, payload)
              where not ingest.is_storable(u.key, u.payload)) then
    perform ingest.quarantine_page(held.facts, held.part, put_page.keys, put_page.payloads, clock);
  end if;
  with page as materialized (
    select distinct on (u.key collate "C") u.key collate "C" as key, u.payload, u.updated_at,
           coalesce(u.deleted, false) as deleted
      from unnest(put_page.keys, put_page.payloads, put_page.updated_at, put_page.deleted)
             with ordinality u (key, payload, updated_at, deleted, no)
     where ingest.is_storable(u.key, u.payload)
     order by u.key collate "C", u.no desc),  -- by key: partitions that bring the same ones wait, and do not deadlock
  stored as (
    insert into ingest.payloads as p (feed_id, key, payload, updated_at, deleted, changed_at)
    select feed, g.key, g.payload, g.updated_at, g.deleted, clock from page g order by g.key
    on conflict on constraint payloads_pkey do update
      set payload = excluded.payload, updated_at = excluded.updated_at, deleted = excluded.deleted,
          changed_at = excluded.changed_at
      where (p.payload, p.updated_at, p.deleted)
            is distinct from (excluded.payload, excluded.updated_at, excluded.deleted)
    returning p.key),
  seen as (
    insert into ingest.sightings as s (feed_id, key, run_no, seen_no, seen_by, seen_round, repeated, consolidated)
    select feed, g.key, run, run, put_page.step_id, round, false, t.key is null
      from page g left join stored t on t.key = g.key
     order by g.key
    on conflict on constraint sightings_pkey do update
      set run_no = case when s.consolidated and excluded.consolidated
                        then s.run_no else excluded.run_no end,
          consolidated = s.consolidated and excluded.consolidated,  -- guard: orphan
          seen_no = excluded.seen_no,  -- guard: seen
          seen_by = excluded.seen_by, seen_round = excluded.seen_round,
          repeated = (s.seen_by, s.seen_round) = (excluded.seen_by, excluded.seen_round)
    returning s.repeated)
  select count(*) into fresh from seen where not seen.repeated;
  return fresh;
end
$$;
grant execute on function ingest.put_page to hf_worker;
