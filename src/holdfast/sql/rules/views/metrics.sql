-- The document's figures, per tenant and channel: `value` in `unit`. Runs, retries and rate limits are counted as work
-- happens, and the size of the dead letter is read from its index; no figure reads history. A histogram's value is its
-- sum, `buckets` has its count and, by their upper bounds, how many there were.
create or replace view rules.metrics with (security_invoker = true) as
with counted as (
  select f.tenant, f.channel, sum(f.applies) as applies, sum(f.ended) as ended, sum(f.duration_ms) as duration_ms,
         (array_agg(f.success_rate order by f.rated_at desc nulls last))[1] as success_rate,
         sum(f.retries) as retries, sum(f.rate_limits) as rate_limits
    from rules.figures f
   where coalesce(f.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
   group by f.tenant, f.channel),
dead as (
  select d.tenant, substr(d.kind, 7) as channel, count(*) as targets
    from holdfast.dead_steps d where d.machine = 'rules.target' group by d.tenant, d.kind)
select m.name, m.unit, m.kind, coalesce(c.tenant, d.tenant) as tenant_id, coalesce(c.channel, d.channel) as channel,
       m.value,
       case when m.kind = 'histogram' then jsonb_build_object('count', c.ended, 'atMost', (
         select jsonb_object_agg(b.bound, b.counted)
           from (select u.bound, sum(u.counted::bigint) as counted
                   from rules.figures f cross join lateral jsonb_each_text(f.durations) u (bound, counted)
                  where f.tenant = c.tenant and f.channel = c.channel group by u.bound) b)) end as buckets
  from counted c
  full join dead d on d.tenant = c.tenant and d.channel = c.channel
 cross join lateral (values
   ('rules.apply.count', 'runs', 'counter', coalesce(c.applies, 0)),
   ('rules.apply.duration_ms', 'milliseconds', 'histogram', coalesce(c.duration_ms, 0)),
   ('rules.apply.success_rate', 'percent', 'gauge', c.success_rate),
   ('rules.dlq.size', 'targets', 'gauge', coalesce(d.targets, 0)),
   ('rules.target.retries', 'retries', 'counter', coalesce(c.retries, 0)),
   ('rules.429.count', 'errors', 'counter', coalesce(c.rate_limits, 0))) m (name, unit, kind, value);
grant select on rules.metrics to hf_producer, hf_worker, hf_reader, hf_operator;
