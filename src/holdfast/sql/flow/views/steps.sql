-- Steps in the words of the DAG engine. Columns that need other rows are read only if they are selected. `attempts`
-- counts failures since the last fresh start. `retryable` comes from the policy; a step that failed for good with tries
-- left is not retryable either.
create or replace view flow.steps with (security_invoker = true) as
select s.id as step_id, n.run_id as task_id, n.name, s.kind as handler, s.state,
       s.state in ('complete', 'resolved_manually') as processed,
       case when s.state in ('complete', 'resolved_manually') then s.finished_at end as processed_at,
       s.lease_id is not null as in_process, s.failures as attempts, p.tries as retry_limit,
       p.retryable
         and (s.state <> 'error' or s.finished_at is null or coalesce(s.failures >= p.tries, false)) as retryable,
       exists (select from holdfast.runs r,
                      lateral (select d.steps from flow.definitions d
                                where d.name = r.name and d.namespace = coalesce(r.input ->> 'namespace', 'default')
                                  and d.version = coalesce(r.input ->> 'version', '0.1.0')
                                    and d.tenant in (r.tenant, '*')
                                order by d.tenant = '*' limit 1) d,
                      jsonb_array_elements(d.steps) t
                where r.id = n.run_id and t ->> 'name' = n.name and (t ->> 'skippable')::boolean) as skippable,
       s.state in ('complete', 'resolved_manually')  -- by request, or because its condition did not hold
         and (exists (select from holdfast.runs r where r.id = n.run_id and r.input -> 'skip' ? n.name)
              or exists (select from holdfast.note_keys k where k.step_id = s.id and k.key = 'skipped')) as skipped,
       case when s.state = 'error' then coalesce(s.failed_at, s.claimed_at) else s.claimed_at end as last_attempted_at,
       s.failed_at as last_failure_at,
       case when w.next_retry_at is not null
         then trim_scale(extract(epoch from w.next_retry_at - s.failed_at)) end as backoff_request_seconds,
       w.next_retry_at, s.input as inputs, s.result as results, s.error,
       array(select m.name from holdfast.edges e join holdfast.run_steps m on m.run_id = n.run_id
             and m.step_id = e.step_id
              where e.next_id = s.id order by e.step_id) as depends_on,
       s.queue, s.priority, s.attempt as executions, s.lease_owner as worker, s.lease_id, s.lease_until,
       s.created_at, s.finished_at, s.tenant
  from holdfast.run_steps n
  join holdfast.steps s on s.id = n.step_id and s.run_id = n.run_id
 cross join lateral (select case when s.state = 'error' then coalesce(s.due_at, s.parked_due_at) end as next_retry_at) w
  left join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p on true
 where s.machine = 'flow.step'
   and exists (select from holdfast.runs r where r.id = n.run_id)  -- else retention removes it
   and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
-- Writes are granted so that they reach the triggers, which apply an operator's adjustments.
grant select, insert, update, delete on flow.steps to hf_producer, hf_worker, hf_reader, hf_operator;
