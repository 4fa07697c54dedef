-- Counts a lot in its run: the steps `fresh` are due now and `leased` more are held, and it has looked up to `reached`.
-- If the run was paused or stopped meanwhile, the due steps are taken back. A run of which nothing is left is closed.
create or replace function holdfast.count_lot(
  run holdfast.runs, fresh bigint[], leased int, taken int, reached bigint, is_last boolean, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  present holdfast.runs;
begin
  update holdfast.runs r
     set live = r.live + cardinality(count_lot.fresh) + count_lot.leased,  -- guard: leased
         to_admit = case when count_lot.is_last or r.to_admit = 0 then 0  -- guard: last
                         else greatest(1, r.to_admit - count_lot.taken) end,
         admitted_until = count_lot.reached,
         first_left = r.first_left - count_lot.taken
   where r.id = run.id
  returning r.* into present;
  if present.first_left <= 0 and present.to_admit > 0 and present.halt is null then
    update holdfast.runs r
       set halt = 'first', halted_at = count_lot.clock, halted_by = current_setting('holdfast.actor', true),
           halt_reason = 'after its first steps'
     where r.id = run.id;
  elsif present.halt in ('paused', 'stopped') then
    perform holdfast.close_runs(holdfast.halt_steps(array[run.id], count_lot.fresh), count_lot.clock);
  elsif present.live = 0 and present.to_admit = 0 and present.finished_at is null and present.moving is null then
    perform holdfast.close_runs(array[run.id], count_lot.clock);
  end if;
end
$$;
