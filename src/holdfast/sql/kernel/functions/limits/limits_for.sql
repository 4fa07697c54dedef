-- The limits that a new step names: those that its starter gave, else its kind's with the input's fields filled in.
-- Null where there are none.
create or replace function holdfast.limits_for(given text[], templates text[], input jsonb)
returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  names constant text[] := coalesce(limits_for.given, array(
    select holdfast.fill_template(t.template, limits_for.input) from unnest(limits_for.templates) t (template)));
begin
  if names = '{}' then
    return null;
  end if;
  perform holdfast.check_limit_names(names);
  return names;
end
$$;
