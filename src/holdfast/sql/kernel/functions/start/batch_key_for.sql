-- The key by which a new step shares calls: what its starter gave, else the field of its input that its kind names, or
-- '' where the kind has a batch and names none. Null for kinds without a batch.
create or replace function holdfast.batch_key_for(given text, batch int, batch_by text, input jsonb)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  content constant jsonb := batch_key_for.input -> batch_key_for.batch_by;
  key text := batch_key_for.given;
begin
  if key is null and batch_key_for.batch > 1 then
    key := '';
    if batch_key_for.batch_by is not null then
      if coalesce(jsonb_typeof(content), 'null') not in ('string', 'number', 'boolean') then
        perform holdfast.refuse(
          'RN005', format('the input has no %s, which groups its steps into batches', batch_key_for.batch_by),
          'pass it as text, a number or a boolean', batch_key_for.batch_by);
      end if;
      key := content #>> '{}';
    end if;
  end if;
  if char_length(key) > 400 then  -- guard: batch_key
    perform holdfast.refuse('RN005', format('batch_key must have at most 400 characters, got %s', char_length(key)),
                            'group steps by a shorter field', coalesce(batch_key_for.batch_by, 'batch_key'));
  end if;
  return key;
end
$$;
