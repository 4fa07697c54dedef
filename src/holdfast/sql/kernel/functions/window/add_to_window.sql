-- Adds new steps to what a run with a window has still to admit: `free` have no parent to wait for, `dependent`
-- have one. Of a run that is not queued yet, begin_admission counts them.
create or replace function holdfast.add_to_window(run_id uuid, free int, dependent int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.runs r
     set to_admit = r.to_admit + case when r.queued_at is not null and r.halt is distinct from 'stopped'
                                      then add_to_window.free else 0 end,
         dependent = r.dependent + add_to_window.dependent
   where r.id = add_to_window.run_id;
end
$$;
