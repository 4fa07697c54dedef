-- Ends the pause of a schedule. Ticks of the time in between do not come: the next one is the first after now. `actor`
-- names the person that the login acts for.
create or replace function holdfast.resume_schedule(
  name text, reason text default null, tenant text default 'default', actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  schedule holdfast.schedules := holdfast.schedule_to_change(
    resume_schedule.name, resume_schedule.tenant, resume_schedule.reason, resume_schedule.actor);
begin
  if schedule.paused_at is null then
    return;
  end if;
  if schedule.ended_at is null and schedule.broken is null then
    if schedule.at > schedule.after_at and schedule.at + schedule.shift <= clock then
      perform holdfast.record_missed(schedule, array[schedule.at], 1, null, clock);
    end if;
    schedule.after_at := greatest(
      schedule.after_at,
      case when schedule.every is null then clock - schedule.shift
           else holdfast.tick_before(schedule.after_at, schedule.every, clock - schedule.shift) end);
    schedule.upcoming := '{}';
    schedule.is_planned := false;
  end if;
  update holdfast.schedules s
     set paused_at = null, paused_by = null, pause_reason = null, upcoming = schedule.upcoming,
         is_planned = schedule.is_planned, after_at = schedule.after_at,
         next_at = schedule.upcoming[1] + s.shift,
         wake_at = case when s.ended_at is null and s.broken is null then clock end
   where s.id = schedule.id
  returning s.* into schedule;
  if schedule.wake_at is not null and schedule.cron is null then
    perform holdfast.store_plan(holdfast.plan_by_interval(schedule, clock), clock);
  end if;
  perform holdfast.note_schedule(schedule.tenant, schedule.name, 'resumed', 'user', resume_schedule.actor,
                                 resume_schedule.reason);
  perform holdfast.wake_for_schedules();
end
$$;
grant execute on function holdfast.resume_schedule to hf_operator;
