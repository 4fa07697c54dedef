-- Whether one of the runs and tasks that a schedule's ticks started is not over.
create or replace function rules.is_any_open(ids text[])
returns boolean
language sql stable
begin atomic
  select holdfast.is_any_open(is_any_open.ids);
end;
