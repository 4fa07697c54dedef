-- Adds the outcomes of steps to their runs' counts, and closes runs that have no live step left, by their counts or as
-- the closing function of their face decides. Runs are locked last and in the order of their ids, so that they stay
-- locked only briefly.
create or replace function holdfast.tally_runs(deltas holdfast.run_delta[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off   -- so that the update follows the order of its sums
set enable_mergejoin = off
set enable_seqscan = off
set jit = off
as $$
declare
  closable uuid[];
begin
  with counted as (
    update holdfast.runs r
       set total = r.total + d.total,
           live = r.live + d.live,  -- guard: live
           succeeded = r.succeeded + d.succeeded,  -- guard: succeeded
           failed = r.failed + d.failed, cancelled = r.cancelled + d.cancelled
      from (select u.run_id, sum(u.total)::int as total, sum(u.live)::int as live, sum(u.succeeded)::int as succeeded,
                   sum(u.failed)::int as failed, sum(u.cancelled)::int as cancelled
              from unnest(tally_runs.deltas) u
             group by u.run_id
             order by u.run_id) d
     where r.id = d.run_id
    returning r.id, r.live, r.finished_at, r.moving)
  select array_agg(c.id) into closable
    from counted c
   where c.live = 0  -- guard: open-steps
     and c.finished_at is null and c.moving is null;
  if closable is not null then  -- guard: closing
    perform holdfast.close_runs(closable, tally_runs.clock);
  end if;
end
$$;
