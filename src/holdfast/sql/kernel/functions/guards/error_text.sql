-- Returns an error's message or, if it has none, the whole error. The only definition; PostgreSQL inlines it.
create or replace function holdfast.error_text(error jsonb)
returns text
language sql immutable
begin atomic
  select coalesce(error_text.error ->> 'message', error_text.error #>> '{}');
end;
grant execute on function holdfast.error_text to hf_producer, hf_worker, hf_reader, hf_operator;
