-- Refuses a key's time that is none, or that comes without a key.
create or replace function holdfast.check_key_for(key text, key_for interval)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if check_key_for.key_for is null then
    return;
  end if;
  if check_key_for.key is null then
    perform holdfast.refuse('RN005', format('key_for is %s, but there is no key', check_key_for.key_for),
                            'pass a key, or leave key_for out', 'key_for');
  end if;
  if check_key_for.key_for <= interval '0' or check_key_for.key_for > interval '1000 years' then
    perform holdfast.refuse('RN005', format('key_for must be above 0 and at most 1000 years, got %s',
                                            check_key_for.key_for),
                            'leave it out to keep the key forever', 'key_for');
  end if;
end
$$;
