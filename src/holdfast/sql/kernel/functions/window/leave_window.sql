-- Takes steps that ended before they were admitted out of what their runs have still to admit. Where a run's face or a
-- retry has chosen the steps it is left to the last lot, which finds no more. The steps are locked.
create or replace function holdfast.leave_window(ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  update holdfast.runs r
     set to_admit = greatest(0, r.to_admit - d.steps)
    from (select s.run_id, count(*)::int as steps
            from holdfast.steps s
            join holdfast.runs w on w.id = s.run_id
            join holdfast.machines c on c.machine = w.machine
           where s.id = any (leave_window.ids) and s.id > w.admitted_until
             and w.to_admit > 0 and w.admits = 'untried' and c.admits is null
           group by s.run_id
           order by s.run_id) d
   where r.id = d.run_id;
end
$$;
