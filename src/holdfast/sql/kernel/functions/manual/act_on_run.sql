-- Moves a whole run by an event that a person requested: the run moves at once, its steps follow in chunks
-- (move_run_steps) or, if a run with a window is retried, as they are admitted. Refuses to retry a run without a step
-- that failed or was not tried, because nothing would be done.
create or replace function holdfast.act_on_run(run holdfast.runs, event text)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- read held steps, not all steps
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  present holdfast.runs;
  untried int;
begin
  perform pg_advisory_xact_lock(holdfast.run_lock(run.id));
  -- Steps are locked before runs: this waits for settles in progress.
  perform from holdfast.steps s
    where s.lease_until is not null and s.run_id = run.id order by s.id for update;
  select r.* into present from holdfast.runs r where r.id = run.id for update;
  if present.id is null then  -- retention was faster
    perform holdfast.refuse_pruned(run.id::text);
    perform holdfast.refuse('RN004', format('there is no run %s', run.id), 'find the id with `holdfast runs list`',
                            run.id::text);
  end if;
  run := present;
  untried := case when run.window_size is not null or run.halt = 'stopped'
                  then holdfast.count_unadmitted(run) - run.left_out else 0 end;
  if holdfast.move_runs(array[run.id], act_on_run.event, clock) = 0 then
    perform holdfast.refuse(
      'RN010', format('run %s is %s and cannot be %s', run.id, run.state, act_on_run.event),
      coalesce('possible now: ' || (select string_agg(m.event, ', ' order by m.event) from holdfast.machine_moves m
                                     where m.machine = run.machine and m.from_state = run.state
                                       and m.event in ('cancelled', 'reopened', 'resolved')
                                       and (m.event <> 'reopened' or run.failed + untried > 0)),
               format('%s is final for a %s', run.state, run.machine)),
      run.id::text);
  end if;
  if act_on_run.event = 'reopened' and run.failed + untried <= 0 then
    perform holdfast.refuse(
      'RN010', format('run %s has no failed step to retry%s', run.id, holdfast.cancelled_names(run)),
      'do a cancelled step again in a new run (of a flow: retry_from), or resolve the run', run.id::text);
  end if;
  if act_on_run.event = 'reopened' and run.window_size is not null then
    update holdfast.runs r
       set admits = 'failed', to_admit = run.failed + untried, admitted_until = 0, first_left = null
     where r.id = run.id;
    perform holdfast.admit_lot(run.id, clock);
  elsif act_on_run.event in ('cancelled', 'reopened') then
    update holdfast.runs r set moving = act_on_run.event, moved_until = 0 where r.id = run.id;
    perform holdfast.move_run_steps(run.id, 1000);
    perform holdfast.wake_movers(run.id);
  end if;
  return (select r.state from holdfast.runs r where r.id = run.id);
end
$$;
