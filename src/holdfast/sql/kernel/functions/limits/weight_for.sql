-- What a new step takes from the buckets of its limits: what its starter gave, else its kind's weight with the input's
-- fields filled in; null for 1. A weight of 0 is for kinds whose calls have a weight of their own.
create or replace function holdfast.weight_for(given numeric, template text, call_weight numeric, input jsonb)
returns numeric
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  filled constant text := case when weight_for.given is null
                               then holdfast.fill_template(weight_for.template, weight_for.input) end;
  weight numeric := weight_for.given;
begin
  if filled is not null then
    if filled !~ '^\s*[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?\s*$' then
      perform holdfast.refuse('RN005', format('weight must be a number, got %s', left(filled, 100)),
                              'name a field of the input that is a number', 'weight');
    end if;
    weight := filled::numeric;
  end if;
  perform holdfast.check_weight(weight, weight_for.call_weight);
  return nullif(weight, 1);
end
$$;
