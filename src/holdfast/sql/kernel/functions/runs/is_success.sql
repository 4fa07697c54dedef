-- Whether a step with that outcome counts as succeeded: an undone step had succeeded. The only definition; PostgreSQL
-- inlines it.
create or replace function holdfast.is_success(outcome text)
returns boolean
language sql immutable
begin atomic
  select is_success.outcome in ('succeeded', 'undone');
end;
grant execute on function holdfast.is_success to hf_producer, hf_worker, hf_reader, hf_operator;
