-- Starts what a schedule starts now, whether it is paused, ended or busy, and returns the ids. Its own ticks come as
-- planned. `actor` names the person that the login acts for.
create or replace function holdfast.run_schedule(
  name text, reason text default null, tenant text default 'default', actor text default null)
returns text[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  schedule constant holdfast.schedules := holdfast.schedule_to_change(
    run_schedule.name, run_schedule.tenant, run_schedule.reason, run_schedule.actor);
  who constant text := coalesce(run_schedule.actor, session_user);
  moment timestamptz := clock;
  ids text[];
begin
  while moment = any (schedule.upcoming)  -- a tick of its own comes as well
        or exists (select from holdfast.ticks t
                    where t.tenant = schedule.tenant and t.name = schedule.name and t.at = moment) loop
    moment := moment + interval '1 microsecond';
  end loop;
  perform holdfast.set_actor('user', who, coalesce(run_schedule.reason, format('schedule %s, run by hand',
                                                                               schedule.name)));
  ids := holdfast.start_tick(schedule, clock);
  perform holdfast.set_actor();
  insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, actor)
  values (schedule.tenant, schedule.name, moment, moment, clock, 'run', 'started', schedule.face, ids, who);
  perform holdfast.note_schedule(schedule.tenant, schedule.name, 'run', 'user', run_schedule.actor,
                                 run_schedule.reason, jsonb_build_object('ids', ids));
  return ids;
end
$$;
grant execute on function holdfast.run_schedule to hf_operator;
