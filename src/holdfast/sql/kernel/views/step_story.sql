-- The moves and notes of a step, in order.
create or replace view holdfast.step_story with (security_invoker = true) as
select j.step_id, j.id, j.at, j.attempt, 'move' as entry, j.event as what, j.from_state,
  j.to_state, j.actor_kind, j.actor,
       j.reason as message, j.error as payload, j.login
  from holdfast.journal j
 where j.step_id is not null and coalesce(j.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
union all
select n.step_id, n.id, n.at, n.attempt, 'note', n.level, null, null, null, null, n.message, n.payload, null
  from holdfast.notes n
 where coalesce(n.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.step_story to hf_producer, hf_worker, hf_reader, hf_operator;
