-- Tasks in the words of the leased worker loop. Columns that need other rows are read only if they are selected.
create or replace view work.tasks with (security_invoker = true) as
select s.id, s.kind as type, s.state as status, s.input, s.result as output,
       case when s.error is not null then jsonb_build_object('type', null, 'message', null, 'trace', null)
              || case jsonb_typeof(s.error) when 'object' then s.error
                else jsonb_build_object('message', s.error #>> '{}') end
       end as error,
       s.lease_until as lease_timeout, s.lease_owner, s.lease_id,
       case when s.lease_id is not null then s.claimed_at end as locked_at,
       s.attempt as try_count,
       (select p.tries from holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p) as max_tries,
       s.failures, s.created_at,
       -- Each move left its time in the journal, even one by hand that set no other time. The journal may be pruned.
       greatest(s.created_at, s.claimed_at, s.finished_at,
                (select j.at from holdfast.journal j where j.step_id = s.id order by j.id desc limit 1)) as updated_at,
       s.finished_at, s.finished_at - s.claimed_at as duration,
       (select n.payload
          from holdfast.note_keys k
          join holdfast.notes n on n.step_id = k.step_id and n.id = k.note_id
         where k.step_id = s.id and k.key = 'usage:' || s.attempt) as usage,
       s.queue, s.priority, s.tenant, coalesce(s.due_at, s.parked_due_at) as due_at,
       nullif(split_part(s.input -> '$trace' ->> 'traceparent', '-', 2), '') as trace_id
  from holdfast.steps s
 where s.machine = 'work.task' and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
-- Writes are granted so that they reach the trigger, whose error names the function to call.
grant select, insert, update, delete on work.tasks to hf_producer, hf_worker, hf_reader, hf_operator;
