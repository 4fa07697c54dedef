-- What happened to runs, in one order, for readers that follow one: `id` grows within a run, `step_id` is its number.
create or replace view ops.event_list with (security_invoker = true) as
select n.id, n.step_id, 'evt-' || lpad(n.id::text, 19, '0') as event_id, f.run_id, n.level, n.message,
       n.payload, n.at as created_at
  from ops.run_facts f
  join holdfast.notes n on n.step_id = f.step_id
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
union all
select j.id, j.step_id, 'evt-' || lpad(j.id::text, 19, '0'), f.run_id,
       case j.to_state when 'failed' then 'error' when 'cancelled' then 'warn' else 'info' end,
       case when j.event = 'created' then 'Run queued'
            when j.event = 'claimed' then 'Run claimed by worker'
            when j.event = 'started' then 'Run started'
            when j.to_state in ('success', 'failed', 'cancelled') then 'Run finished: ' || j.to_state
            else format('Run moved by hand: %s', j.to_state) end,
       case when j.event = 'claimed' then jsonb_build_object('worker_id', j.actor)
            else jsonb_strip_nulls(jsonb_build_object(
              'from', nullif(j.from_state, 'new'), 'to', j.to_state, 'event', j.event, 'actor_kind', j.actor_kind,
              'actor', j.actor, 'login', j.login, 'error', j.error,
              'reason', coalesce(j.reason, case when j.event = 'expired' then f.metadata ->> 'reason' end))) end,
       j.at
  from ops.run_facts f
  join holdfast.journal j on j.step_id = f.step_id
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on ops.event_list to hf_producer, hf_worker, hf_reader, hf_operator;
