-- Every move of a step, as it was journaled; nothing here is ever changed. The same columns as flow.task_transitions.
create or replace view flow.step_transitions with (security_invoker = true) as
select j.id, j.step_id, j.from_state, j.to_state,
       jsonb_strip_nulls(jsonb_build_object(
         'event', j.event, 'actor_kind', j.actor_kind, 'actor', j.actor, 'reason', j.reason, 'attempt', j.attempt,
         'lease_id', j.lease_id, 'error', j.error)) as metadata,
       j.id as sort_key,
       not exists (select from holdfast.journal l where l.step_id = j.step_id and l.id > j.id) as most_recent,
       j.at as created_at, j.tenant
  from holdfast.journal j
 where j.machine = 'flow.step' and j.step_id is not null;
grant select, insert, update, delete on flow.step_transitions to hf_producer, hf_worker, hf_reader, hf_operator;
