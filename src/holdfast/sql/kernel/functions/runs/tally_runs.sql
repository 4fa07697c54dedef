-- Adds the outcomes of steps to their runs' counts, and closes runs that have no live step left, by their counts or as
-- the closing function of their face decides. A run with steps still to admit is not closed. Steps that became due in a
-- run that is paused or stopped are taken back: `touched` are the steps that moved, or whose children did. The counts
-- are of the newest version of the run's row, so it does not matter whether the pause or this call came first. Runs are
-- locked last and in the order of their ids, so that they stay locked only briefly.
create or replace function holdfast.tally_runs(
  deltas holdfast.run_delta[], clock timestamptz, touched bigint[] default '{}')
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
  halted uuid[];
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
    returning r.id, r.live, r.finished_at, r.moving, r.to_admit, r.queued_at, r.halt)
  select array_agg(c.id) filter (
           where c.live = 0  -- guard: open-steps
             and c.finished_at is null and c.moving is null
             and c.to_admit = 0  -- guard: last-lot
             and c.queued_at is not null),  -- guard: queued
         array_agg(c.id) filter (where c.live > 0 and c.halt in ('paused', 'stopped'))  -- guard: halt
    into closable, halted
    from counted c;
  if halted is not null then
    closable := closable || holdfast.halt_steps(halted, tally_runs.touched || array(
      select e.next_id from holdfast.edges e where e.step_id = any (tally_runs.touched)));
  end if;
  if closable is not null then  -- guard: closing
    perform holdfast.close_runs(closable, tally_runs.clock);
  end if;
end
$$;
