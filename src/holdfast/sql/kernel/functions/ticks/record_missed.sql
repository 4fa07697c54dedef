-- Records ticks that are not fired, because nobody fired them in time. One row may stand for `ticks` of them, from the
-- given one up to `until_at`.
create or replace function holdfast.record_missed(
  schedule holdfast.schedules, missed timestamptz[], ticks int, until_at timestamptz, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ticks, until_at, actor)
  select schedule.tenant, schedule.name, m.at, m.at + schedule.shift, record_missed.clock, 'clock', 'missed',
         schedule.face, record_missed.ticks, record_missed.until_at, 'scheduler'
    from unnest(record_missed.missed) m (at)
  on conflict on constraint ticks_pkey do nothing;
end
$$;
