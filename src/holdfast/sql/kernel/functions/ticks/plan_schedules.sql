-- Stores the next ticks that a worker computed for what fire_schedules returned: an array of {id, version, after,
-- ticks, words, dropped, broken}, with times in microseconds since 1970. `dropped` is [how many, the first, the last]
-- of ticks that lie too far back to be listed; `broken` says why there are no ticks. A plan for a schedule that changed
-- since, or that another worker has planned, changes nothing. Returns after how long to call fire_schedules again.
create or replace function holdfast.plan_schedules(plans jsonb)
returns interval
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  epoch constant timestamptz := 'epoch';
  unit constant interval := '1 microsecond';
  plan jsonb;
  schedule holdfast.schedules;
  ticks timestamptz[];
begin
  if jsonb_typeof(plan_schedules.plans) is distinct from 'array' then
    perform holdfast.refuse('RN005', 'plans must be an array', 'pass what was computed for fire_schedules', 'plans');
  end if;
  for plan in select p from jsonb_array_elements(plan_schedules.plans) p order by (p ->> 'id')::bigint loop
    select s.* into schedule from holdfast.schedules s
     where s.id = (plan ->> 'id')::bigint and holdfast.matches_any(allowed, s.tenant) and s.cron is not null
       and num_nonnulls(s.ended_at, s.broken) = 0
       for update;
    continue when not found or schedule.version <> (plan ->> 'version')::int  -- guard: version
      or coalesce(schedule.upcoming[cardinality(schedule.upcoming)], schedule.after_at)
         <> epoch + (plan ->> 'after')::bigint * unit;  -- guard: planned
    if plan ->> 'broken' is not null then
      update holdfast.schedules s
         set broken = left(plan ->> 'broken', 1000), upcoming = '{}', next_at = null, wake_at = null
       where s.id = schedule.id;
      perform holdfast.note_schedule(schedule.tenant, schedule.name, 'broken', 'scheduler', 'scheduler',
                                     left(plan ->> 'broken', 1000));
      continue;
    end if;
    ticks := array(select epoch + t.at::bigint * unit from jsonb_array_elements_text(plan -> 'ticks') t (at));
    if (select bool_or(t.at <= coalesce(t.before, epoch + (plan ->> 'after')::bigint * unit)) is not false
          from (select u.at, lag(u.at) over (order by u.n) as before
                  from unnest(ticks) with ordinality u (at, n)) t) then
      perform holdfast.refuse('RN005', format('the ticks of schedule %s do not ascend', schedule.name),
                              'compute them from `after` on', 'ticks');
    end if;
    if plan ? 'dropped' then
      perform holdfast.record_missed(schedule, array[epoch + (plan #>> '{dropped,1}')::bigint * unit],
                                     (plan #>> '{dropped,0}')::int, epoch + (plan #>> '{dropped,2}')::bigint * unit,
                                     clock);
    end if;
    schedule.words := left(plan ->> 'words', 200);
    perform holdfast.store_plan(holdfast.with_ticks(schedule, ticks, false), clock);
  end loop;
  return holdfast.next_tick_in(allowed);
end
$$;
grant execute on function holdfast.plan_schedules to hf_worker;
