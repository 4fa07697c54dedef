-- Returns a version 7 UUID: 48 bits of milliseconds, so that ids sort by time, and random bits for the rest.
create or replace function holdfast.uuid7()
returns uuid
language sql volatile
begin atomic
  select pg_catalog.encode(
           pg_catalog.set_byte(
             pg_catalog.substring(pg_catalog.int8send((extract(epoch from holdfast.clock()) * 1000)::bigint), 3)
               || tail.bytes,
             6, (pg_catalog.get_byte(tail.bytes, 0) & 15) | 112),
           'hex')::uuid
    from (select pg_catalog.substring(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 7) as bytes) tail;
end;
