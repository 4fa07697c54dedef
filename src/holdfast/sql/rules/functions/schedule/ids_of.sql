-- Returns a JSON array of numbers as an array; null if there is none.
create or replace function rules.ids_of(given jsonb)
returns bigint[]
language sql immutable
begin atomic
  select case when jsonb_typeof(ids_of.given) = 'array'
              then array(select e.id::bigint from jsonb_array_elements_text(ids_of.given) e (id)) end;
end;
