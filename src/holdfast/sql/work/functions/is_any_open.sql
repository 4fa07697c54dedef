-- Whether one of the tasks that a schedule's tick started is not over.
create or replace function work.is_any_open(ids text[])
returns boolean
language sql stable
begin atomic
  select holdfast.is_any_open(is_any_open.ids);
end;
