-- Refuses a schedule that makes no sense, by the part at fault. With a clock it also refuses one that is over by then.
create or replace function holdfast.check_schedule(schedule holdfast.schedules, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  face constant holdfast.faces := (select f from holdfast.faces f where f.face = schedule.face);
  odd record;
begin
  perform holdfast.check_name('target', coalesce(schedule.target, ''));
  perform holdfast.check_size('an input', schedule.input);
  perform holdfast.check_size('options', schedule.options);
  if face.starts is null then
    perform holdfast.refuse(
      'RN005', format('a schedule cannot start anything of the face %s', schedule.face),
      'use one of: ' || (select string_agg(f.face, ', ' order by f.face) from holdfast.faces f
                          where f.starts is not null),
      'face');
  end if;
  if jsonb_typeof(schedule.options) <> 'object' then
    perform holdfast.refuse('RN005', format('options must be an object, got %s', jsonb_typeof(schedule.options)),
                            'such as {"queue": "mail"}', 'options');
  end if;
  if num_nonnulls(schedule.cron, schedule.every, schedule.at) <> 1 then
    perform holdfast.refuse('RN005', format('a schedule needs one of cron, every and at, got %s',
                                            num_nonnulls(schedule.cron, schedule.every, schedule.at)),
                            'such as cron => ''0 2 * * *''', 'cron');
  end if;
  perform holdfast.check_cron(schedule.cron);
  if schedule.every not between interval '1 second' and interval '366 days'
     or extract(month from schedule.every) <> 0 then
    perform holdfast.refuse('RN005', format('every must be a second to 366 days, got %s', schedule.every),
                            'a cron has months: 0 2 1 * *', 'every');
  end if;
  -- Read last: the view reads a file per zone, which takes a tenth of a second.
  if schedule.timezone is distinct from 'UTC'
     and not exists (select from holdfast.schedules s where s.timezone = schedule.timezone)
     and not exists (select from pg_timezone_names z where z.name = schedule.timezone) then
    perform holdfast.refuse('RN005', format('there is no time zone %s', to_json(schedule.timezone)),
                            'use a name of pg_timezone_names, such as Europe/Berlin', 'timezone');
  end if;
  select w.what, w.at into odd
    from (values (1, 'at', schedule.at), (2, 'starts_at', schedule.starts_at), (3, 'ends_at', schedule.ends_at))
           w (no, what, at)
   where w.at not between timestamptz '1900-01-02 00:00:00+00' and timestamptz '9000-01-01 00:00:00+00'
   order by w.no
   limit 1;
  if odd.what is not null then  -- a calendar ends with 9999, and ticks are planned some centuries ahead
    perform holdfast.refuse('RN005', format('%s must be in the years 1900 to 8999, got %s', odd.what, odd.at),
                            'leave ends_at out for a schedule without an end', odd.what);
  end if;
  if schedule.ends_at <= check_schedule.clock then
    perform holdfast.refuse('RN005', format('ends_at must be in the future, got %s', schedule.ends_at),
                            'leave it out for a schedule without an end', 'ends_at');
  end if;
  if schedule.at <= check_schedule.clock then
    perform holdfast.refuse('RN005', format('at must be in the future, got %s', schedule.at),
                            'start the work itself instead', 'at');
  end if;
  if schedule.ends_at < coalesce(schedule.starts_at, schedule.at) then
    perform holdfast.refuse('RN005', format('ends_at is before the first tick: %s', schedule.ends_at),
                            'end after the start', 'ends_at');
  end if;
  if schedule.missed is null or schedule.missed not in ('skip', 'one', 'all') then
    perform holdfast.refuse('RN005', format('missed must be skip, one or all, got %s', to_json(schedule.missed)),
                            'one fires the newest of the ticks that nobody fired', 'missed');
  end if;
  if schedule.missed_window not between interval '0' and interval '3660 days' then
    perform holdfast.refuse('RN005', format('missed_window must be 0 to 3660 days, got %s', schedule.missed_window),
                            'leave it out to catch up with ticks of any age', 'missed_window');
  end if;
  if schedule.overlap is null or schedule.overlap not in ('allow', 'skip', 'cancel') then
    perform holdfast.refuse('RN005', format('overlap must be allow, skip or cancel, got %s',
                                            to_json(schedule.overlap)),
                            'skip starts nothing while the work of the previous tick is not over', 'overlap');
  end if;
  if (schedule.overlap <> 'allow' and face.is_open is null)
     or (schedule.overlap = 'cancel' and face.cancels is null) then
    perform holdfast.refuse('RN005', format('the face %s does not tell what is over, or cannot cancel it',
                                            schedule.face),
                            'use overlap allow', 'overlap');
  end if;
  if schedule.spread is null or schedule.spread not between interval '0' and interval '1 day' then
    perform holdfast.refuse('RN005', format('spread must be 0 to a day, got %s', schedule.spread),
                            'such as 60 seconds', 'spread');
  end if;
end
$$;
