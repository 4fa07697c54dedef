-- Returns how many steps of a run its face wants admitted, of the `free` ones that are not: all, unless it says.
create or replace function holdfast.count_wanted(run holdfast.runs, free int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  face constant text := (select c.counts_admitted from holdfast.machines c where c.machine = run.machine);
  wanted int := count_wanted.free;
begin
  if face is not null then
    execute format('select %s($1)', holdfast.face_name(face)) into wanted using run.id;
  end if;
  return coalesce(wanted, 0);
end
$$;
