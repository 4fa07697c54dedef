-- Refuses a text that cannot be a name. A null passes: each caller checks which names are required.
create or replace function holdfast.check_name(what text, name text, longest int default 200)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not holdfast.is_name(check_name.name, check_name.longest) then
    perform holdfast.refuse(
      'RN005', format('%s must have 1 to %s characters and no control characters, got %s characters: %s',
                      check_name.what, check_name.longest, length(check_name.name), to_json(left(check_name.name, 50))),
      'use a shorter name, or a digest of it', check_name.what);
  end if;
end
$$;
