-- Returns by how much the ticks of a schedule are shifted: below `spread`, in milliseconds, the same for the same name.
create or replace function holdfast.schedule_shift(tenant text, name text, spread interval)
returns interval
language sql immutable
begin atomic
  select case when schedule_shift.spread < interval '2 milliseconds' then interval '0'
              else make_interval(secs => mod(
                     hashtextextended(schedule_shift.tenant || E'\n' || schedule_shift.name, 0)::numeric
                       + 9223372036854775808,
                     floor(extract(epoch from schedule_shift.spread) * 1000)) / 1000.0) end;
end;
