-- Returns after how long a worker must look at a schedule of these tenants (null: all), at once if one is due; null if
-- no schedule has a time for that.
create or replace function holdfast.next_tick_in(allowed text[])
returns interval
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  soonest constant timestamptz := (
    select s.wake_at from holdfast.schedules s
     where s.wake_at is not null and holdfast.matches_any(next_tick_in.allowed, s.tenant)
     order by s.wake_at
     limit 1);
begin
  return case when soonest is not null then greatest(interval '0', soonest - holdfast.clock()) end;
end
$$;
