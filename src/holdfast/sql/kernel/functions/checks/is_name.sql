-- Whether a text can be a name: 1 to `longest` characters, none of them a control character, and not `*`, which stands
-- for all. Null for null. The only definition; PostgreSQL inlines it.
create or replace function holdfast.is_name(name text, longest int default 200)
returns boolean
language sql immutable
begin atomic
  select is_name.name <> '' and is_name.name <> '*' and length(is_name.name) <= is_name.longest
     and is_name.name !~ '[\u0001-\u001f\u007f-\u009f]';
end;
