-- Raises one of our own errors. It returns a boolean so that a CHECK can end in `or holdfast.refuse(…)`.
create or replace function holdfast.refuse(code text, message text, hint text default null)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if refuse.hint is null then
    raise exception using errcode = refuse.code, message = refuse.message;
  end if;
  raise exception using errcode = refuse.code, message = refuse.message, hint = refuse.hint;
end
$$;
