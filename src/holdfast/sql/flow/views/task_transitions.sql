-- Every move of a task, as journaled, ordered by `sort_key`. Rows never change.
create or replace view flow.task_transitions with (security_invoker = true) as
select j.id, j.run_id as task_id, nullif(j.from_state, 'new') as from_state, j.to_state,
       jsonb_strip_nulls(jsonb_build_object(
         'event', j.event, 'actor_kind', j.actor_kind, 'actor', j.actor, 'login', j.login, 'reason', j.reason,
         'attempt', j.attempt, 'lease_id', j.lease_id, 'error', j.error)) as metadata,
       j.id as sort_key,
       not exists (select from holdfast.journal l where l.run_id = j.run_id and l.step_id is null
                   and l.id > j.id) as most_recent,
       j.at as created_at, j.tenant
  from holdfast.journal j
 where j.machine = 'flow.task' and j.step_id is null
   and coalesce(j.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on flow.task_transitions to hf_producer, hf_worker, hf_reader, hf_operator;
