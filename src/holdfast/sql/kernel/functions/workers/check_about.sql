-- Refuses a worker's `about` that is not an object, or is too large.
create or replace function holdfast.check_about(about jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(check_about.about) <> 'object' then
    perform holdfast.refuse('RN005', 'about must be an object', '{"state": "polling", "host": "a"}');
  end if;
  perform holdfast.check_size('about', check_about.about);
end
$$;
