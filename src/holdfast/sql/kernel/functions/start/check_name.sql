-- Refuses a text that cannot name anything. A null passes: what must not be missing is checked where it is taken.
create or replace function holdfast.check_name(what text, name text, longest int default 200)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not holdfast.is_name(check_name.name, check_name.longest) then
    perform holdfast.refuse(
      'RN005', format('%s must have 1 to %s characters and no control characters, got %s of them: %s', check_name.what,
                      check_name.longest, length(check_name.name), to_json(left(check_name.name, 50))),
      'take a shorter name, or a digest of it', check_name.what);
  end if;
end
$$;
