-- Whether one of these lists and wishes is still hoped for.
create or replace function toy.is_any_open(ids text[])
returns boolean
language sql stable
begin atomic
  select holdfast.is_any_open(is_any_open.ids);
end;
