-- Cancels those of the runs that are not over. The caller has called set_actor, which has the reason.
create or replace function ingest.cancel_open(ids text[], reason text)
returns void
language sql
begin atomic
  select holdfast.cancel_open(cancel_open.ids || array(
    select b.step_id::text from ingest.starts b where b.run_id::text = any (cancel_open.ids)));
end;
