-- Queues a run and admits its first lot; with `first` only so many steps, then it waits for resume_run. A run without a
-- step to admit is closed at once. A run that is queued already does not change. Returns the run's state. The caller
-- has called set_actor.
create or replace function holdfast.begin_admission(run_id uuid, first int default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  run holdfast.runs;
  free int;
  wanted int;
begin
  if begin_admission.first < 1 then
    perform holdfast.refuse('RN005', format('first must be at least 1, got %s', begin_admission.first),
                            'leave it out to admit all steps', 'first');
  end if;
  perform pg_advisory_xact_lock(holdfast.run_lock(begin_admission.run_id));
  select r.* into run from holdfast.runs r where r.id = begin_admission.run_id;
  if run.queued_at is null then
    perform holdfast.lock_next_lot(run.id, begin_admission.first);
  end if;
  select r.* into run from holdfast.runs r where r.id = begin_admission.run_id for update;
  if run.queued_at is not null and run.finished_at is null then
    return run.state;
  end if;
  if holdfast.move_runs(array[run.id], 'queued', clock) = 0 then
    perform holdfast.refuse('RN010', format('run %s is %s and cannot be queued', run.id, run.state),
                            'queue a run once, before it begins', run.id::text);
  end if;
  free := holdfast.count_unadmitted(run);
  wanted := least(free, holdfast.count_wanted(run, free));
  update holdfast.runs r
     set to_admit = wanted, left_out = free - wanted, first_left = begin_admission.first,
         window_size = coalesce(r.window_size, 5000)
   where r.id = run.id;
  if wanted > 0 then
    perform holdfast.admit_lot(run.id, clock);
  elsif run.live = 0 then
    perform holdfast.set_actor('system', 'window', 'it has no step to admit');
    perform holdfast.close_runs(array[run.id], clock);
  end if;
  return (select r.state from holdfast.runs r where r.id = run.id);
end
$$;
