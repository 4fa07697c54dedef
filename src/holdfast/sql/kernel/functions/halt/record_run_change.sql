-- Records who paused, resumed or stopped a run, and why.
create or replace function holdfast.record_run_change(run holdfast.runs, event text, reason text, actor text)
returns void
language sql
begin atomic
  insert into holdfast.run_changes (at, tenant, run_id, event, actor, login, reason)
  values (holdfast.clock(), run.tenant, run.id, record_run_change.event, record_run_change.actor,
          case when record_run_change.actor <> session_user then session_user end, record_run_change.reason);
end;
