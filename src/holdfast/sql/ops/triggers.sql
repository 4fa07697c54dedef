-- The views are read-only: the error of a write names the function to call. One UPDATE of ops.runs is the document's.
create or replace trigger takes_no_other_write instead of insert or delete on ops.runs
  for each row execute function ops.refuse_write();
create or replace trigger takes_stale_runs instead of update on ops.runs
  for each row execute function ops.take_stale_update();
create or replace trigger takes_no_write instead of insert or update or delete on ops.run_events
  for each row execute function ops.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ops.projects
  for each row execute function ops.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ops.environments
  for each row execute function ops.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ops.artifacts
  for each row execute function ops.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ops.approvals
  for each row execute function ops.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ops.webhook_deliveries
  for each row execute function ops.refuse_write();
