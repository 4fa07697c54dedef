-- Ends a run's pause, records who did it and why, makes the steps that claims parked due again and admits the next lot.
-- Returns the run's state.
create or replace function holdfast.unhalt_run(run_id uuid, reason text default null, actor text default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  person constant text := coalesce(unhalt_run.actor, session_user);
  run holdfast.runs;
begin
  perform pg_advisory_xact_lock(holdfast.run_lock(unhalt_run.run_id));
  if exists (select from holdfast.runs r where r.id = unhalt_run.run_id and r.halt in ('paused', 'first')) then
    perform holdfast.lock_parked_steps(unhalt_run.run_id, 1000);
    perform holdfast.lock_next_lot(unhalt_run.run_id);
  end if;
  select r.* into run from holdfast.runs r where r.id = unhalt_run.run_id for update;
  if run.finished_at is not null or run.queued_at is null or run.halt = 'stopped' then
    perform holdfast.refuse(
      'RN010', format('run %s is %s and cannot be resumed', run.id,
                      case when run.finished_at is null and run.halt = 'stopped' then 'being stopped'
                           else run.state end),
      case when run.queued_at is null then 'it has not been queued'
           when run.finished_at is null then 'retry it when it is over' else 'it is over; retry runs it again' end,
      run.id::text);
  end if;
  if run.halt is null then
    return run.state;
  end if;
  perform holdfast.set_actor('user', person, unhalt_run.reason);
  update holdfast.runs r
     set halt = null, halted_at = null, halted_by = null, halt_reason = null, first_left = null,
         moving = coalesce(r.moving, 'resumed')
   where r.id = run.id;
  perform holdfast.record_run_change(run, 'resumed', unhalt_run.reason, person);
  if run.moving is null then
    perform holdfast.move_run_steps(run.id, 1000);
  end if;
  perform holdfast.set_actor('system', 'window', unhalt_run.reason);
  perform holdfast.admit_lot(run.id, clock);
  perform holdfast.wake_movers(run.id);
  perform holdfast.set_actor();
  return (select r.state from holdfast.runs r where r.id = run.id);
end
$$;
