-- Refuses what a worker says of itself when it is no object or too large.
create or replace function holdfast.check_about(about jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(check_about.about) <> 'object' then
    perform holdfast.refuse('RN005', 'what a worker says of itself is an object', '{"state": "polling", "host": "a"}');
  end if;
  perform holdfast.check_size('what a worker says of itself', check_about.about);
end
$$;
