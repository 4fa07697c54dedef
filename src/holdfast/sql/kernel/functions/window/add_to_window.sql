-- Adds new steps to what a run with a window has still to admit: `free` have no parent to wait for, `dependent`
-- have one, `first` is the lowest of their ids, which may have been drawn before those of admitted steps. Of a run that
-- is not queued yet, begin_admission counts them. The caller has the run's lock (run_lock): a lot that is chosen
-- meanwhile would not see them.
create or replace function holdfast.add_to_window(run_id uuid, free int, dependent int, first bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.runs r
     set to_admit = r.to_admit + case when r.queued_at is not null and r.halt is distinct from 'stopped'
                                      then add_to_window.free else 0 end,
         dependent = r.dependent + add_to_window.dependent,
         admitted_until = case when r.admits = 'untried'
                               then least(r.admitted_until, add_to_window.first - 1)  -- guard: low
                               else r.admitted_until end
   where r.id = add_to_window.run_id;
end
$$;
