-- Keeps a schedule from firing until it is resumed; what its ticks have started goes on. `actor` names the person that
-- the login acts for.
create or replace function holdfast.pause_schedule(
  name text, reason text default null, tenant text default 'default', actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  schedule constant holdfast.schedules := holdfast.schedule_to_change(
    pause_schedule.name, pause_schedule.tenant, pause_schedule.reason, pause_schedule.actor);
begin
  update holdfast.schedules s
     set paused_at = coalesce(s.paused_at, holdfast.clock()), paused_by = coalesce(pause_schedule.actor, session_user),
         pause_reason = pause_schedule.reason, wake_at = null
   where s.id = schedule.id;
  perform holdfast.note_schedule(schedule.tenant, schedule.name, 'paused', 'user', pause_schedule.actor,
                                 pause_schedule.reason);
end
$$;
grant execute on function holdfast.pause_schedule to hf_operator;
