-- Whether one of the runs that a schedule's tick started is not over; a run that is being planned is its task.
create or replace function ingest.is_any_open(ids text[])
returns boolean
language sql stable
begin atomic
  select holdfast.is_any_open(is_any_open.ids || array(
    select b.step_id::text from ingest.starts b where b.run_id::text = any (is_any_open.ids)));
end;
