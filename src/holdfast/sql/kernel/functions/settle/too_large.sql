-- Returns the error of a step whose result, error or cursor has more than one mebibyte, or null.
create or replace function holdfast.too_large(what text, value jsonb)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case when pg_column_size(too_large.value) > 1048576 then jsonb_build_object(
    'type', 'TooLarge',
    'message', format('the %s has %s bytes; 1048576 is the limit', too_large.what,
                      pg_column_size(too_large.value))) end;
end
$$;
