-- Whether a value equals the wanted one; null wants any. PostgreSQL inlines it, so that plans do not change.
create or replace function holdfast.matches(wanted text, value text)
returns boolean
language sql immutable
begin atomic
  select matches.wanted is null or matches.value = matches.wanted;
end;
grant execute on function holdfast.matches to hf_producer, hf_worker, hf_reader, hf_operator;
