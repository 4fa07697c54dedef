-- Fires the ticks that are due, of up to `batch` schedules of the login's tenants. Any worker may call it at any time,
-- and many at once: each tick is fired once. Returns how many schedules it looked at, after how long to call again
-- (null: not before a schedule changes), and the schedules whose next ticks the worker is to compute from their cron
-- and to pass to plan_schedules. Times there are microseconds since 1970. A tick waits for a lock for a tenth of a
-- second, because claims wait for this call; then its schedule is looked at again two seconds later.
create or replace function holdfast.fire_schedules(batch int default 50)
returns table (looked_at int, waits interval, plans jsonb)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by the index of schedules to look at, whatever the statistics say
set enable_bitmapscan = off
set jit = off
set lock_timeout = '100ms'
as $$
declare
  clock timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  schedule holdfast.schedules;
begin
  fire_schedules.looked_at := 0;
  fire_schedules.plans := '[]';
  for schedule in
    select s.* from holdfast.schedules s
     where s.wake_at <= clock and holdfast.matches_any(allowed, s.tenant)  -- guard: tenant
     order by s.wake_at
     limit greatest(1, least(fire_schedules.batch, 1000))
       for update skip locked
  loop
    clock := holdfast.clock();
    fire_schedules.looked_at := fire_schedules.looked_at + 1;
    if schedule.cron is null and holdfast.lacks_ticks(schedule, clock) then
      schedule := holdfast.plan_by_interval(schedule, clock);
    end if;
    if not holdfast.is_all_due(schedule, clock) then  -- guard: newest
      schedule := holdfast.fire_due(schedule, clock);
    end if;
    perform holdfast.store_plan(schedule, clock);
    if schedule.upcoming[1] + schedule.shift <= clock and not holdfast.is_all_due(schedule, clock) then  -- blocked
      update holdfast.schedules s set wake_at = clock + interval '2 s' where s.id = schedule.id;
    end if;
    if holdfast.lacks_ticks(schedule, clock) and schedule.cron is not null then
      fire_schedules.plans := fire_schedules.plans || jsonb_build_object(
        'id', schedule.id, 'version', schedule.version, 'cron', schedule.cron, 'timezone', schedule.timezone,
        'now', holdfast.microseconds(least(clock, schedule.ends_at)), 'after', holdfast.microseconds(
          coalesce(schedule.upcoming[cardinality(schedule.upcoming)], schedule.after_at)));
    end if;
  end loop;
  fire_schedules.waits := holdfast.next_tick_in(allowed);
  return next;
end
$$;
grant execute on function holdfast.fire_schedules to hf_worker;
