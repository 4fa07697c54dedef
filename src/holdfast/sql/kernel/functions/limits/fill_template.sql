-- Puts fields of an input where a template names them: shop:{shop} becomes shop:acme. A field must be a text or a
-- number.
create or replace function holdfast.fill_template(template text, input jsonb)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  filled text := fill_template.template;
  field text;
begin
  for field in select distinct m[1] from regexp_matches(fill_template.template, '\{([^{}]+)\}', 'g') m loop
    if coalesce(jsonb_typeof(fill_template.input -> field), 'null') not in ('string', 'number') then
      perform holdfast.refuse(
        'RN005', format('the input has no %s, which %s needs', field, fill_template.template),
        'give the field as a text or a number, or name the limits at the start', 'input');
    end if;
    filled := replace(filled, '{' || field || '}', fill_template.input ->> field);
  end loop;
  return filled;
end
$$;
