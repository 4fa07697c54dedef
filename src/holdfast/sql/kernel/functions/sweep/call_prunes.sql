-- Lets each face remove its own rows that belong to steps and runs which are about to be deleted.
create or replace function holdfast.call_prunes(step_ids bigint[], run_ids uuid[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  function text;
begin
  for function in select f.prunes from holdfast.faces f where f.prunes is not null order by f.face loop
    execute format('select %s($1, $2)', holdfast.face_name(function))
      using call_prunes.step_ids, call_prunes.run_ids;
  end loop;
end
$$;
