-- The events of rule runs: each move of a run, the beginning of each try of a target (both as journaled, so they commit
-- with the move), each time that the breaker of a channel opened or closed, and those that rules.write_event stored. A
-- claim that was given back uncharged is no new try.
create or replace view rules.events with (security_invoker = true) as
select j.id, format('%s:%s:%s', j.run_id, t.type, j.id) as event_key, f.tenant as tenant_id,
       'automation.run.' || t.type as event_type,
       jsonb_strip_nulls(jsonb_build_object(
         'runId', j.run_id, 'ruleId', f.rule_id, 'channel', f.channel, 'from', nullif(j.from_state, 'new'),
         'status', j.to_state, 'actorKind', j.actor_kind, 'actor', j.actor, 'reason', j.reason)) as payload,
       f.run_id as rule_run_id, f.metadata ->> 'correlationId' as correlation_id, j.at as created_at
  from rules.run_facts f
  join holdfast.journal j on j.run_id = f.run_id and j.step_id is null
 cross join lateral (
   select case when j.event = 'created' then 'previewed' when j.event = 'reopened' then 'retried'
               when j.to_state = 'APPLYING' then 'started' else lower(j.to_state) end as type) t
 where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
union all
select j.id, format('%s:%s:apply:%s', n.run_id, n.step_id, (
         select count(*) from holdfast.journal b
          where b.step_id = j.step_id and b.id < j.id and b.event in ('retried', 'failed', 'expired'))),
       f.tenant, 'automation.target.apply',
       jsonb_build_object('targetId', n.step_id, 'runId', n.run_id),
       f.run_id, f.metadata ->> 'correlationId', j.at
  from rules.run_facts f
  join holdfast.run_steps n on n.run_id = f.run_id
  join holdfast.journal j on j.step_id = n.step_id and j.event = 'claimed'
 where coalesce((select b.event from holdfast.journal b where b.step_id = j.step_id and b.id < j.id
                  order by b.id desc limit 1), '') not in ('released', 'snoozed')
   and coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
union all
select c.id, format('%s:breaker:%s', c.name, c.id), c.tenant,
       'automation.channel.' || case c.event when 'opened' then 'paused' else 'resumed' end,
       jsonb_strip_nulls(jsonb_build_object(
         'channel', substr(c.name, 7), 'message', case c.event when 'opened' then 'Circuit breaker triggered' end,
         'until', c.payload -> 'until', 'failures', c.payload -> 'failures')),
       null, null, c.at
  from holdfast.limit_changes c
 where c.name >= 'rules:' and c.name < 'rules;' and c.event in ('opened', 'closed')
   and coalesce(c.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
union all
select e.id, e.event_key, e.tenant, e.event_type, e.payload, e.run_id, e.correlation_id, e.at
  from rules.stored_events e
 where coalesce(e.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select, insert, update, delete on rules.events to hf_producer, hf_worker, hf_reader, hf_operator;
