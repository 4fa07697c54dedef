-- Returns the JSON object that a request passes as `field`; null becomes an empty object. Refuses anything else.
create or replace function flow.checked_object(field text, content jsonb)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(checked_object.content) <> 'object' then
    perform holdfast.refuse('RN005', format('%s must be a JSON object, got %s', checked_object.field,
                                            jsonb_typeof(checked_object.content)),
                            'pass fields by name, such as {"order_id": 123}', checked_object.field);
  end if;
  return coalesce(checked_object.content, '{}');
end
$$;
