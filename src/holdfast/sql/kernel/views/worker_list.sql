-- Workers for people, one row each: what a worker serves, its state, what it holds. `standing` is alive, late (its
-- leases may still be valid) or gone.
create or replace view holdfast.worker_list with (security_invoker = true) as
select w.worker, w.queues,
       case when not w.takes_any_kind then array(
         select distinct u.kind from holdfast.workers o, unnest(o.kinds) u (kind)
          where o.worker = w.worker and holdfast.is_own_worker(o.tenants,
                                                               (select holdfast.allowed_tenants())) order by u.kind)
       end as kinds,
       case when not w.takes_any_tenant then array(
         select distinct u.tenant from holdfast.workers o, unnest(o.tenants) u (tenant)
          where o.worker = w.worker and holdfast.is_own_worker(o.tenants,
                                                               (select holdfast.allowed_tenants())) order by u.tenant)
       end as tenants,
       -- Its last report may be older than a claim: a worker that holds steps is processing.
       case when h.held > 0 and w.state in ('connecting', 'recovery', 'polling', 'idle') then 'processing'
            else w.state end as state,
       holdfast.worker_standing(w.seen_at, (select holdfast.clock())) as standing,
       w.is_asleep, coalesce(h.held, 0) as held, h.oldest_claimed_at, w.started_at, w.seen_at, w.about
  from (select o.worker, array_agg(o.queue order by o.queue) as queues,
               bool_or(o.kinds is null) as takes_any_kind, bool_or(o.tenants is null) as takes_any_tenant,
               -- The row of a queue that it only claimed from has no report.
               (array_agg(o.state order by o.seen_at desc) filter (where o.state is not null))[1] as state,
               (array_agg(o.about order by o.about = '{}', o.seen_at desc))[1] as about,
               bool_and(o.is_asleep) as is_asleep, min(o.started_at) as started_at, max(o.seen_at) as seen_at
          from holdfast.workers o
         where holdfast.is_own_worker(o.tenants, (select holdfast.allowed_tenants()))
         group by o.worker) w
  left join (select s.lease_owner, count(*) as held, min(s.claimed_at) as oldest_claimed_at
               from holdfast.steps s
              where s.lease_until is not null
                and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
              group by s.lease_owner) h on h.lease_owner = w.worker;
grant select on holdfast.worker_list to hf_producer, hf_worker, hf_reader, hf_operator;
