-- The views are read-only: the error of a write names the function to call.
create or replace trigger takes_no_write instead of insert or update or delete on work.tasks
  for each row execute function work.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on work.audit_logs
  for each row execute function work.refuse_write();
