-- Tasks in the words of the DAG engine. The counts are the run's own: no step is read for them.
create or replace view flow.tasks with (security_invoker = true) as
select r.id as task_id, r.name, coalesce(r.input ->> 'namespace', 'default') as namespace,
       coalesce(r.input ->> 'version', '0.1.0') as version, coalesce(r.input -> 'context', '{}') as context, r.state,
       r.state in ('complete', 'resolved_manually') as complete,
       array(select t.tag from jsonb_array_elements_text(coalesce(r.input -> 'tags', '[]')) t (tag)) as tags,
       r.input ->> 'initiator' as initiator, r.input ->> 'source_system' as source_system,
         r.input ->> 'reason' as reason,
       array(select b.name from jsonb_array_elements_text(coalesce(r.input -> 'skip', '[]')) b (name)) as bypass_steps,
       r.of_run as retry_of, r.created_at as requested_at, r.started_at, r.finished_at, r.total as total_steps,
       r.live as active_steps, r.total - r.live - r.succeeded - r.failed - r.cancelled as waiting_steps,
       r.succeeded as completed_steps, r.failed as failed_steps, r.cancelled as cancelled_steps, r.tenant
  from holdfast.runs r
 where r.machine = 'flow.task' and coalesce(r.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
-- Writes are granted so that they reach the trigger, whose error names the function to call.
grant select, insert, update, delete on flow.tasks to hf_producer, hf_worker, hf_reader, hf_operator;
