-- Every move of a task, as journaled. Rows never change.
create or replace view work.audit_logs with (security_invoker = true) as
select j.id, j.event as event_type, j.step_id as resource_id, j.at as created_at, j.actor, j.actor_kind, j.tenant,
       jsonb_strip_nulls(jsonb_build_object(
         'from_status', j.from_state, 'to_status', j.to_state, 'try_count', j.attempt, 'lease_id', j.lease_id,
         'reason', j.reason, 'error', j.error, 'login', j.login)) as metadata
  from holdfast.journal j
 where j.machine = 'work.task' and j.step_id is not null
   and coalesce(j.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
-- Writes are granted so that they reach the trigger, whose error names the function to call.
grant select, insert, update, delete on work.audit_logs to hf_producer, hf_worker, hf_reader, hf_operator;
