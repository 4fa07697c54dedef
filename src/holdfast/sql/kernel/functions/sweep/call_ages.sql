-- Lets each face remove up to `batch` of its own rows that are older than it keeps them, and returns how many went.
create or replace function holdfast.call_ages(batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  function text;
  removed int;
  total int := 0;
begin
  for function in select f.ages from holdfast.faces f where f.ages is not null order by f.face loop
    execute format('select %s($1)', holdfast.face_name(function)) into removed using call_ages.batch;
    total := total + removed;
  end loop;
  return total;
end
$$;
