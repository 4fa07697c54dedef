-- Whether one of the runs that a schedule's tick queued is not over, or a retry of one.
create or replace function ops.is_any_open(ids text[])
returns boolean
language sql stable
begin atomic
  select exists (select from ops.run_facts f where f.run_id = any (is_any_open.ids) and f.finished_at is null)
      or exists (select from ops.run_facts f where f.retry_of = any (is_any_open.ids) and f.finished_at is null);
end;
