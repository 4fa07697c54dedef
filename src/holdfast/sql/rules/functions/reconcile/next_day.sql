-- Returns the next time in steps of a day after `at` that has not passed: days on which no worker ran are left out.
create or replace function rules.next_day(at timestamptz)
returns timestamptz
language sql stable
begin atomic
  select next_day.at + greatest(
    1, ceil(extract(epoch from holdfast.clock() - next_day.at) / 86400))::int * interval '24 hours';
end;
