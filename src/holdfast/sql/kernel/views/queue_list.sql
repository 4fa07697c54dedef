-- Queues and what is in them now; `parked` counts up to 10001, which means: or more.
create or replace view holdfast.queue_list with (security_invoker = true) as
select q.queue, q.paused_at, q.paused_by, q.pause_reason, d.due, d.later, d.oldest_due_at, p.parked,
       holdfast.live_workers(q.queue) as live_workers
  from holdfast.queues q,
       lateral (select count(*) filter (where s.due_at <= holdfast.clock()) as due,
                       count(*) filter (where s.due_at > holdfast.clock()) as later,
                       min(s.due_at) as oldest_due_at
                  from holdfast.steps s where s.queue = q.queue and s.due_at is not null
                   and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true)) d,
       lateral (select count(*) as parked from (
                  select from holdfast.steps s where s.queue = q.queue and s.parked_for is not null
                     and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
                   limit 10001) n) p;
grant select on holdfast.queue_list to hf_producer, hf_worker, hf_reader, hf_operator;
