-- Returns a schedule with more planned ticks, as far as its end allows. `is_all`: no tick comes after them.
create or replace function holdfast.with_ticks(schedule holdfast.schedules, ticks timestamptz[], is_all boolean)
returns holdfast.schedules
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  schedule.is_planned := with_ticks.is_all or schedule.is_planned
    or coalesce((select max(t.at) > schedule.ends_at from unnest(with_ticks.ticks) t (at)), false);
  schedule.upcoming := schedule.upcoming || array(
    select t.at from unnest(with_ticks.ticks) t (at)
     where coalesce(t.at <= schedule.ends_at, true)  -- guard: end
     order by t.at);
  return schedule;
end
$$;
