-- Whether a value is among the wanted ones; null wants any. PostgreSQL inlines it, so that plans do not change.
create or replace function holdfast.matches_any(wanted text[], value text)
returns boolean
language sql immutable
begin atomic
  select matches_any.wanted is null or matches_any.value = any (matches_any.wanted);
end;
grant execute on function holdfast.matches_any to hf_producer, hf_worker, hf_reader, hf_operator;
