-- The limits that a planned step names; null where it names none and its kind's count.
create or replace function holdfast.planned_limits(plan jsonb)
returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(jsonb_typeof(plan -> 'limits'), 'null') = 'null' then
    return null;
  end if;
  if jsonb_typeof(plan -> 'limits') <> 'array' then
    perform holdfast.refuse('RN005', format('limits must be an array of names, got %s', left(plan ->> 'limits', 100)),
                            'write ["shop:acme"]', 'limits');
  end if;
  return array(select jsonb_array_elements_text(plan -> 'limits'));
end
$$;
