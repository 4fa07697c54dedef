-- Whether a record has a key that an index can hold, and is not too large. Stable, not immutable, so that queries
-- inline it: pg_column_size is stable.
create or replace function ingest.is_storable(key text, payload jsonb)
returns boolean
language sql stable
begin atomic
  select coalesce(octet_length(is_storable.key) between 1 and 1024
                  and pg_column_size(is_storable.payload) <= 1048576, false);
end;
