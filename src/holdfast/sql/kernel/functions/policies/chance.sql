-- Returns a random number from 0 up to 1, for jitter. Only the test kit replaces it.
create or replace function holdfast.chance()
returns double precision
language sql volatile
begin atomic
  select pg_catalog.random();
end;
grant execute on function holdfast.chance to hf_producer, hf_worker, hf_reader, hf_operator;
