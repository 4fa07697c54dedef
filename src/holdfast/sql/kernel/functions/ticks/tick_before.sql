-- Returns the last nominal time of a schedule by interval that is not after `clock`; its times are `anchor` and every
-- `every` before and after it.
create or replace function holdfast.tick_before(anchor timestamptz, every interval, clock timestamptz)
returns timestamptz
language sql immutable
begin atomic
  select tick_before.anchor + make_interval(secs => extract(epoch from tick_before.every)::double precision) * floor(
           extract(epoch from tick_before.clock - tick_before.anchor) / extract(epoch from tick_before.every));
end;
