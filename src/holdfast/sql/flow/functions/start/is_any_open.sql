-- Whether one of the runs that a schedule's tick started is not over, or a retry of one.
create or replace function flow.is_any_open(ids text[])
returns boolean
language sql stable
begin atomic
  select holdfast.is_any_open(is_any_open.ids);
end;
