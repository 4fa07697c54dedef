-- Refuses JSON beyond one mebibyte: what is larger belongs into a store of its own, with its address in the input.
create or replace function holdfast.check_size(what text, value jsonb)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_column_size(check_size.value) > 1048576 then
    perform holdfast.refuse('RN011', format('%s has %s bytes; 1048576 is the limit', check_size.what, pg_column_size(check_size.value)),
                            'keep it elsewhere and pass where it is', check_size.what);
  end if;
end
$$;
