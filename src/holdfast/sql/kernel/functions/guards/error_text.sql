-- An error in words: its message or, of one that has none, all of it. The one definition; it is put into a query as it
-- stands.
create or replace function holdfast.error_text(error jsonb)
returns text
language sql immutable
begin atomic
  select coalesce(error_text.error ->> 'message', error_text.error #>> '{}');
end;
grant execute on function holdfast.error_text to hf_producer, hf_worker, hf_reader, hf_operator;
