-- Every move of a step, as journaled, and before them its creation, which comes from the step's own row: it has no
-- `id`, and its `sort_key` of 0 sorts first. Rows never change. The same columns as flow.task_transitions.
create or replace view flow.step_transitions with (security_invoker = true) as
select j.id, j.step_id, j.from_state, j.to_state,
       jsonb_strip_nulls(jsonb_build_object(
         'event', j.event, 'actor_kind', j.actor_kind, 'actor', j.actor, 'login', j.login, 'reason', j.reason,
         'attempt', j.attempt, 'lease_id', j.lease_id, 'error', j.error)) as metadata,
       j.id as sort_key,
       not exists (select from holdfast.journal l where l.step_id = j.step_id and l.id > j.id) as most_recent,
       j.at as created_at, j.tenant
  from holdfast.journal j
 where j.machine = 'flow.step' and j.step_id is not null
   and coalesce(j.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
union all
select null, s.id, null, b.state, '{"event": "created"}'::jsonb, 0,
       -- A step that has moved may have lost its journal to retention.
       s.last_event is null and not exists (select from holdfast.journal l where l.step_id = s.id),
       s.created_at, s.tenant
  from holdfast.steps s
  join holdfast.machine_states b on b.machine = s.machine and b.is_initial
 where s.machine = 'flow.step' and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on flow.step_transitions to hf_producer, hf_worker, hf_reader, hf_operator;
