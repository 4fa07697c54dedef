-- Refuses the first of many texts that cannot be a name (check_name).
create or replace function holdfast.check_names(what text, names text[], longest int default 200)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  odd constant text := (
    select u.name from unnest(check_names.names) u (name)
      where not holdfast.is_name(u.name, check_names.longest) limit 1);
begin
  perform holdfast.check_name(check_names.what, odd, check_names.longest);
end
$$;
