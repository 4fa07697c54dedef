-- Takes a key for a new task or run, and returns its id; returns the id of the one that was started under the key
-- before, unless that time is over (`key_for`). Refuses a key that was used with another input.
create or replace function holdfast.take_key(tenant text, key text, id text, hash bytea, key_for interval)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
begin
  insert into holdfast.keys as k (tenant, key, id, input_hash, expires_at)
  values (take_key.tenant, take_key.key, take_key.id, take_key.hash, clock + take_key.key_for)
  on conflict (tenant, key) do update
    set id = excluded.id, input_hash = excluded.input_hash, expires_at = excluded.expires_at
    where k.expires_at <= clock;  -- guard: expired
  if found then
    return take_key.id;
  end if;
  return holdfast.id_of_key(take_key.tenant, take_key.key, take_key.hash);
end
$$;
