-- Stores which ticks of a locked schedule are handled and which are planned, and when a worker must look at it next. If
-- it lacks ticks, another worker plans them if this one does not within a second. A schedule without any tick left has
-- ended.
create or replace function holdfast.store_plan(schedule holdfast.schedules, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  is_over constant boolean := schedule.is_planned and schedule.upcoming = '{}';
  due_at constant timestamptz := schedule.upcoming[1] + schedule.shift;
begin
  update holdfast.schedules s
     set after_at = schedule.after_at, last_at = schedule.last_at, upcoming = schedule.upcoming,
         is_planned = schedule.is_planned, words = schedule.words, next_at = due_at,
         ended_at = case when is_over then store_plan.clock end,
         wake_at = case when s.paused_at is not null or is_over then null
                        when holdfast.is_all_due(schedule, store_plan.clock) then store_plan.clock + interval '1 s'
                        when holdfast.lacks_ticks(schedule, store_plan.clock)
                        then least(due_at, store_plan.clock + interval '1 s')
                        else due_at end
   where s.id = schedule.id;
  if is_over and schedule.ended_at is null then
    perform holdfast.note_schedule(schedule.tenant, schedule.name, 'ended', 'scheduler', 'scheduler', null);
  end if;
end
$$;
