-- Puts fields of an input where a template names them: shop:{shop} becomes shop:acme, and {order.shop} is a field of a
-- field. It must be a text or a number. `source` is what a refusal calls the input.
create or replace function holdfast.fill_template(template text, input jsonb, source text default 'input')
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  filled text := fill_template.template;
  field text;
  content jsonb;
begin
  for field in select distinct m[1] from regexp_matches(fill_template.template, '\{([^{}]+)\}', 'g') m loop
    content := coalesce(fill_template.input -> field, fill_template.input #> string_to_array(field, '.'));
    if coalesce(jsonb_typeof(content), 'null') not in ('string', 'number') then
      perform holdfast.refuse(
        'RN005', format('the %s has no %s, which %s needs', fill_template.source, field, fill_template.template),
        'pass it as text or a number', fill_template.source);
    end if;
    filled := replace(filled, '{' || field || '}', content #>> '{}');
  end loop;
  return filled;
end
$$;
