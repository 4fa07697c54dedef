-- Lists the violations that the faces' own functions violations() find. The first word of a machine is its face's
-- schema.
create or replace function holdfast.face_violations()
returns table (invariant text, subject text, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  face text;
begin
  for face in
    select distinct n.nspname
      from holdfast.machines m
      join pg_catalog.pg_namespace n on n.nspname = holdfast.face_name(split_part(m.machine, '.', 1))
      join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = 'violations' and p.pronargs = 0
     where n.nspowner = p.proowner and pg_catalog.pg_get_userbyid(p.proowner) = current_user  -- only our own
     order by 1
  loop
    return query execute format('select v.invariant, v.subject, v.detail from %I.violations() v', face);
  end loop;
end
$$;
