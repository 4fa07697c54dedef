-- Raises one of our own errors: `message` says what happened, `hint` what to do next, `field` names the invalid
-- argument.
create or replace function holdfast.refuse(code text, message text, hint text default null, field text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if refuse.hint is null then
    raise exception using errcode = refuse.code, message = refuse.message;
  end if;
  if refuse.field is null then
    raise exception using errcode = refuse.code, message = refuse.message, hint = refuse.hint;
  end if;
  raise exception using errcode = refuse.code, message = refuse.message, hint = refuse.hint, column = refuse.field;
end
$$;
