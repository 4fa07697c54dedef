-- Refuses a start whose arguments make no sense.
create or replace function holdfast.check_start(name text, input jsonb, priority int)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(check_start.name, '') = '' or length(check_start.name) > 200 then
    perform holdfast.refuse('RN005', 'a start needs the name of its handler, of 1 to 200 characters');
  end if;
  if check_start.priority is null or check_start.priority not between 0 and 9 then
    perform holdfast.refuse('RN005', format('priority %s is not possible', check_start.priority), 'take 0 to 9; higher goes first');
  end if;
  perform holdfast.check_size('an input', check_start.input);
end
$$;
