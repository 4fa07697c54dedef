-- Refuses JSON over one mebibyte: a larger value belongs in a store of its own, with its address in the input.
create or replace function holdfast.check_size(what text, value jsonb)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_column_size(check_size.value) > 1048576 then
    perform holdfast.refuse('RN011', format('%s must have at most 1048576 bytes, got %s', check_size.what,
                                            pg_column_size(check_size.value)),
                            'store it elsewhere and pass its address', check_size.what);
  end if;
end
$$;
