-- Records what became of a tick that the clock fired.
create or replace function holdfast.record_tick(
  schedule holdfast.schedules, at timestamptz, clock timestamptz, outcome text, ids text[], cancelled text[],
  error jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, cancelled, error, actor)
  values (schedule.tenant, schedule.name, record_tick.at, record_tick.at + schedule.shift, record_tick.clock, 'clock',
          record_tick.outcome, schedule.face, record_tick.ids, record_tick.cancelled, record_tick.error, 'scheduler');
end
$$;
