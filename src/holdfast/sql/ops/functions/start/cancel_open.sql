-- Cancels those of the runs that are not over. The caller has called set_actor, which has the reason.
create or replace function ops.cancel_open(ids text[], reason text)
returns void
language sql
begin atomic
  select holdfast.cancel_open(array(
    select f.step_id::text from ops.run_facts f where f.run_id = any (cancel_open.ids) and f.finished_at is null));
end;
