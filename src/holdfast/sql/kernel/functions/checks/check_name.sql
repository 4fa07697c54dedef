-- Refuses a text that cannot be a name. A null passes: each caller checks which names are required.
create or replace function holdfast.check_name(what text, name text, longest int default 200)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if check_name.name = '*' then
    perform holdfast.refuse('RN005', format('%s must be one name, got *, which stands for all', check_name.what),
                            format('use 1 to %s characters other than a single *', check_name.longest),
                            check_name.what);
  end if;
  if not holdfast.is_name(check_name.name, check_name.longest) then
    perform holdfast.refuse(
      'RN005', format('%s must have 1 to %s characters and no control characters, got %s characters: %s',
                      check_name.what, check_name.longest, length(check_name.name), to_json(left(check_name.name, 50))),
      case when length(check_name.name) > check_name.longest
           then format('use %s characters or fewer, such as a digest of it', check_name.longest)
           when check_name.name = '' then format('use 1 to %s characters', check_name.longest)
           else 'leave out line breaks, tabs and other control characters' end, check_name.what);
  end if;
end
$$;
