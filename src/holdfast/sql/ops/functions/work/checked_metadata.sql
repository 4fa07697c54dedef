-- Returns the metadata that a caller passed; null becomes an empty object. Refuses what is not an object, or too large.
create or replace function ops.checked_metadata(metadata jsonb)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(checked_metadata.metadata) <> 'object' then
    perform holdfast.refuse('RN005', format('metadata must be a JSON object, got %s',
                                            jsonb_typeof(checked_metadata.metadata)),
                            'pass fields by name, such as {"exit_code": 0}', 'p_metadata');
  end if;
  perform holdfast.check_size('metadata', checked_metadata.metadata);
  return coalesce(checked_metadata.metadata, '{}');
end
$$;
