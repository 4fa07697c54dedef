-- Those of the steps whose run is over, paused or stopped.
create or replace function holdfast.of_ended_runs(ids bigint[])
returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select s.id
      from holdfast.steps s
      join lateral (select r.finished_at, r.halt from holdfast.runs r where r.id = s.run_id offset 0) r on true
     where s.id = any (of_ended_runs.ids) and s.run_id is not null
       and (r.finished_at is not null or r.halt in ('paused', 'stopped')));
end
$$;
