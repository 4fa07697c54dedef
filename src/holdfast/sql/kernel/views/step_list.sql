-- Steps for people. `standing` says in one word what a step waits for. `phase` and `outcome` mean the same for every
-- machine; a step has an outcome only once it is over. `label` is what people call a row of its machine, such as a
-- task. A step that a limit refused has the limit's name in `limited_by` and, if it opens by time, `limited_until`.
create or replace view holdfast.step_list with (security_invoker = true) as
select s.id, s.kind, s.queue, s.state, s.tenant, s.machine, s.run_id, s.priority, s.attempt, s.failures,
       case when s.finished_at is not null then 'over'
            when s.parked_for = 'handler' then 'no handler'
            when s.parked_for = 'move' then 'no move'
            when s.parked_for = 'limit' and l.open_until is not null then 'breaker open'
            when s.parked_for = 'limit' and l.is_paused then 'upstream paused'
            when s.parked_for = 'limit' then 'limited'
            when s.lease_id is not null then 'held'
            when u.halt = 'paused' and coalesce(s.due_at, s.parked_due_at) is not null then 'paused'
            when s.parked_for is not null then 'parked'
            when s.waits > 0 then 'waiting'
            when s.due_at > holdfast.clock() then 'later'
            when s.due_at is not null then 'due'
            else 'not admitted' end as standing,
       coalesce(s.due_at, s.parked_due_at) as due_at, s.waits, s.lease_owner, s.lease_until, s.created_at,
       s.claimed_at, s.finished_at, s.input, s.cursor, s.result, s.error,
       case when s.finished_at is not null then 'over' when t.phase = 'open_or_over' then 'open'
            when t.phase = 'open_or_held' then case when s.lease_id is null then 'open' else 'held' end
            else t.phase end as phase,
       case when s.finished_at is not null then t.outcome end as outcome, s.parked_for,
       (select m.label from holdfast.machines m where m.machine = s.machine) as label,
       l.name as limited_by, l.until as limited_until
  from holdfast.steps s
  left join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
  left join lateral (select r.halt from holdfast.runs r where r.id = s.run_id offset 0) u on s.finished_at is null
  left join lateral (
    select h.name, h.open_until, p.until > holdfast.clock() as is_paused,
           nullif(coalesce(h.open_until, case when p.until > holdfast.clock() then p.until end, h.wake_at), 'infinity')
             as until
      from holdfast.limit_states h
      left join lateral holdfast.limit_rule(h.name, h.tenant) r on true
     cross join lateral (select greatest(h.paused_until, r.paused_until) as until) p
     where s.parked_for = 'limit' and h.id = s.limited_by) l on true
 where (s.run_id is null or exists (select from holdfast.runs r where r.id = s.run_id))  -- else retention removes it
   and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.step_list to hf_producer, hf_worker, hf_reader, hf_operator;
