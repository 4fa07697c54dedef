-- Returns the time by the database's wall clock. Only the test kit replaces it.
create or replace function holdfast.clock()
returns timestamptz
language sql volatile parallel safe
begin atomic
  select pg_catalog.clock_timestamp();
end;
grant execute on function holdfast.clock to hf_producer, hf_worker, hf_reader, hf_operator;
