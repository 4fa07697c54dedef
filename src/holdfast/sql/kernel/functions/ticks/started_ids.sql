-- Returns what the last ten ticks of a schedule that started something of its face have started.
create or replace function holdfast.started_ids(schedule holdfast.schedules)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return array(
    select i.id
      from (select t.ids from holdfast.ticks t
             where t.tenant = schedule.tenant and t.name = schedule.name and t.outcome = 'started'
               and t.face = schedule.face
             order by t.fired_at desc
             limit 10) t
     cross join lateral unnest(t.ids) i (id));
end
$$;
