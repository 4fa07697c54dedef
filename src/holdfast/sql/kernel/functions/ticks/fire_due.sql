-- Fires the ticks of a locked schedule that are due, and returns the schedule without them; the caller stores it. A
-- tick is missed if it is more than a minute late, or more than five seconds late and the next one is due too; `missed`
-- says which of those are fired all the same. A tick that is blocked stays planned, with those after it.
create or replace function holdfast.fire_due(schedule holdfast.schedules, clock timestamptz)
returns holdfast.schedules
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  due constant timestamptz[] := array(
    select u.at from unnest(schedule.upcoming) u (at) where u.at + schedule.shift <= fire_due.clock order by u.at);
  newest constant timestamptz := due[cardinality(due)];
  missed constant timestamptz[] := array(
    select d.at from unnest(due) d (at)
     cross join lateral (select fire_due.clock - d.at - schedule.shift as late) l
     where l.late > interval '60 s' or (l.late > interval '5 s' and d.at <> newest)
     order by d.at);
  caught_up constant timestamptz[] := array(
    select m.at from unnest(missed) m (at)
     where coalesce(fire_due.clock - m.at - schedule.shift <= schedule.missed_window, true)
       and (schedule.missed = 'all' or (schedule.missed = 'one' and m.at = newest))  -- guard: late
     order by m.at desc
     limit 100);  -- guard: most
  done int := cardinality(due);
begin
  if due = '{}' then
    return schedule;
  end if;
  perform holdfast.record_missed(
    schedule, array(select m.at from unnest(missed) m (at) where m.at <> all (caught_up)), 1, null, fire_due.clock);
  for place in 1 .. cardinality(due) loop
    if (due[place] <> all (missed) or due[place] = any (caught_up))
       and holdfast.fire_tick(schedule, due[place], fire_due.clock) = 'blocked' then
      done := place - 1;
      exit;
    end if;
  end loop;
  schedule.after_at := coalesce(due[done], schedule.after_at);
  schedule.last_at := coalesce(due[done], schedule.last_at);
  schedule.upcoming := schedule.upcoming[done + 1 :];
  return schedule;
end
$$;
