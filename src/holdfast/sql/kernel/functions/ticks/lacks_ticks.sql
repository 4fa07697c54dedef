-- Whether more ticks of a schedule must be planned: few are left, or all of them are due, so that the newest that is
-- due may be none of them.
create or replace function holdfast.lacks_ticks(schedule holdfast.schedules, clock timestamptz)
returns boolean
language sql immutable
begin atomic
  select not (lacks_ticks.schedule).is_planned
     and (cardinality((lacks_ticks.schedule).upcoming) < 5
          or holdfast.is_all_due(lacks_ticks.schedule, lacks_ticks.clock));
end;
