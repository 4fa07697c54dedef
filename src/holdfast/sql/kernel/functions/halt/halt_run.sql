-- Pauses or stops a run (`halt` is paused or stopped), records who did it and why, and returns the run's state. A pause
-- writes the run's row and no other: claims park the steps that they meet. A stop also takes back what is due, from the
-- end of the window first, so that the run can be closed.
create or replace function holdfast.halt_run(run_id uuid, halt text, reason text default null, actor text default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  person constant text := coalesce(halt_run.actor, session_user);
  run holdfast.runs;
  admitted bigint[];
begin
  if halt_run.halt = 'stopped' then
    perform pg_advisory_xact_lock(holdfast.run_lock(halt_run.run_id));
    admitted := holdfast.lock_admitted(array(
      select n.step_id from holdfast.runs r
       cross join lateral (
         (select m.step_id from holdfast.run_steps m  -- the window
           where m.run_id = r.id and m.step_id <= r.admitted_until order by m.step_id desc limit 2 * r.window_size)
         union
         (select m.step_id from holdfast.run_steps m  -- without a window, what the first chunk below reads
           where m.run_id = r.id and r.window_size is null order by m.step_id limit 10000)) n
       where r.id = halt_run.run_id));
  end if;
  select r.* into run from holdfast.runs r where r.id = halt_run.run_id for update;
  if run.halt = halt_run.halt then
    return run.state;
  end if;
  if run.finished_at is not null or run.queued_at is null or run.halt = 'stopped' then
    perform holdfast.refuse(
      'RN010', format('run %s is %s and cannot be %s', run.id,
                      case when run.halt = 'stopped' and run.finished_at is null then 'being stopped'
                           else run.state end, halt_run.halt),
      case when run.queued_at is null then 'nothing of it runs: it has not been queued'
           when run.finished_at is null then 'retry it when it is over' else 'it is over; retry runs it again' end,
      run.id::text);
  end if;
  perform holdfast.set_actor('user', person, halt_run.reason);
  update holdfast.runs r
     set halt = halt_run.halt, halted_at = clock, halted_by = person, halt_reason = halt_run.reason,
         to_admit = case when halt_run.halt = 'stopped' then 0 else r.to_admit end,
         first_left = case when halt_run.halt = 'stopped' then null else r.first_left end,
         moving = case when halt_run.halt = 'stopped' then 'stopped' else r.moving end,
         moved_until = case when halt_run.halt = 'stopped' then 0 else r.moved_until end
   where r.id = run.id;
  perform holdfast.record_run_change(run, halt_run.halt, halt_run.reason, person);
  if halt_run.halt = 'stopped' then
    perform holdfast.set_actor('system', 'stop', halt_run.reason);  -- it closes the run, if nothing is held
    perform holdfast.halt_steps(array[run.id], admitted);
    -- What is due elsewhere is left to the workers: its steps are not locked here, and the run's row is.
    perform holdfast.move_run_steps(r.id, 1000)
       from holdfast.runs r where r.id = run.id and (r.window_size is null or holdfast.is_only_held(r));
    perform holdfast.wake_movers(run.id);
  end if;
  perform holdfast.set_actor();
  return (select r.state from holdfast.runs r where r.id = run.id);
end
$$;
