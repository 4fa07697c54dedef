-- Returns what a schedule says, without its state, for the record of its changes.
create or replace function holdfast.schedule_definition(schedule holdfast.schedules)
returns jsonb
language sql stable
begin atomic
  select jsonb_strip_nulls(to_jsonb(schedule_definition.schedule) - array[
    'id', 'tenant', 'name', 'words', 'version', 'after_at', 'upcoming', 'is_planned', 'next_at', 'wake_at', 'last_at',
    'ended_at', 'broken', 'paused_at', 'paused_by', 'pause_reason', 'defined_at', 'shift']);
end;
