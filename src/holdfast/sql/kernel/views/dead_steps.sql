-- The dead letter: steps that failed for good and that nobody has dealt with.
create or replace view holdfast.dead_steps with (security_invoker = true) as
select s.id, s.kind, s.queue, s.state, s.tenant, s.machine, s.run_id, s.attempt, s.failures,
  s.finished_at, s.error, s.input
  from holdfast.steps s
  join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
 where s.finished_at is not null and t.outcome = 'failed'
   and s.last_event not in ('succeeded', 'cancelled', 'resolved', 'rolled_back')  -- the predicate of the index
   and not exists (select from holdfast.resolutions r where r.step_id = s.id and r.resolved_at >= s.finished_at)
   and (s.run_id is null or exists (select from holdfast.runs r where r.id = s.run_id))  -- else retention removes it
   and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.dead_steps to hf_producer, hf_worker, hf_reader, hf_operator;
