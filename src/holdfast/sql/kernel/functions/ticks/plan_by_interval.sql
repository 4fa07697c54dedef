-- Returns a schedule without a cron with its next ticks planned, from where the planned ones end. What lies so far back
-- that it is more than a thousand ticks is recorded as missed, in one row.
create or replace function holdfast.plan_by_interval(schedule holdfast.schedules, clock timestamptz)
returns holdfast.schedules
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  last_planned constant timestamptz := schedule.upcoming[cardinality(schedule.upcoming)];
  after constant timestamptz := coalesce(last_planned, schedule.after_at);  -- guard: after
  step constant interval := make_interval(secs => extract(epoch from schedule.every)::double precision);
  passed bigint;
  dropped bigint := 0;
begin
  if schedule.at is not null then
    return holdfast.with_ticks(schedule, case when after < schedule.at then array[schedule.at] end, true);
  end if;
  passed := greatest(0, floor(extract(epoch from least(plan_by_interval.clock, schedule.ends_at) - after)
                              / extract(epoch from step)));
  if passed > 1000 then
    dropped := passed - 1000;
    perform holdfast.record_missed(schedule, array[after + step], dropped::int, after + step * dropped,
                                   plan_by_interval.clock);
  end if;
  return holdfast.with_ticks(
    schedule, array(select after + step * n from generate_series(dropped + 1, passed + 20) n), false);
end
$$;
