-- The views are read-only: the error of a write names the function to call.
create or replace trigger takes_no_write instead of insert or update or delete on flow.tasks
  for each row execute function flow.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on flow.task_transitions
  for each row execute function flow.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on flow.step_transitions
  for each row execute function flow.refuse_write();
create or replace trigger takes_no_other_write instead of insert or delete on flow.steps
  for each row execute function flow.refuse_write();
create or replace trigger takes_adjustments instead of update on flow.steps
  for each row execute function flow.take_adjustment();
