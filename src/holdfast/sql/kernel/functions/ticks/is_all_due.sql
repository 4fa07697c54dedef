-- Whether all planned ticks of a schedule are due and more will follow: then it is not known which is the newest.
create or replace function holdfast.is_all_due(schedule holdfast.schedules, clock timestamptz)
returns boolean
language sql immutable
begin atomic
  select not (is_all_due.schedule).is_planned
     and coalesce((is_all_due.schedule).upcoming[cardinality((is_all_due.schedule).upcoming)]
                  + (is_all_due.schedule).shift <= is_all_due.clock, true);
end;
