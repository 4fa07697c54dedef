-- Returns the task or run that was started under a key. Refuses a key that was used with another input.
create or replace function holdfast.id_of_key(tenant text, key text, hash bytea)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  used holdfast.keys;
begin
  select k.* into strict used from holdfast.keys k where k.tenant = id_of_key.tenant and k.key = id_of_key.key;
  if used.input_hash <> id_of_key.hash then  -- guard: input
    perform holdfast.refuse('RN003', format('key %s was already used with another input', id_of_key.key),
                            format('it started %s; use another key for another input', used.id), 'key');
  end if;
  return used.id;
end
$$;
