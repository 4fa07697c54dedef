-- Whether a value is the wanted one; null wants any. It is put into a query as it stands, so the plan is that of the
-- expression.
create or replace function holdfast.matches(wanted text, value text)
returns boolean
language sql immutable
begin atomic
  select matches.wanted is null or matches.value = matches.wanted;
end;
grant execute on function holdfast.matches to hf_producer, hf_worker, hf_reader, hf_operator;
