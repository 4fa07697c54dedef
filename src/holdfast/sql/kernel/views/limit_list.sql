-- Limits as people look at them: each rule, and each limit that was met, with the rule that it goes by. A family's own
-- row counts all of its values that go by it. `breaker` is closed, open, or half-open while it waits for its probe or
-- for the probe's end; null without one. A pause without an end has no paused_until, but paused_by.
create or replace view holdfast.limit_list with (security_invoker = true) as
with states as (  -- as the policy of limit_states has it, which a superuser is past
  select n.*
    from holdfast.limit_states n
   where (select holdfast.allowed_tenants()) is null  -- asked first: what follows would look at all parked steps
      or n.tenant = any ((select holdfast.allowed_tenants())::text[])
      or (n.tenant = '*' and exists (
            select from holdfast.steps p
             where p.limited_by = n.id and coalesce(p.parked_for, '') = 'limit'
               and p.tenant = any ((select holdfast.allowed_tenants())::text[]))))
select l.name, l.tenant, r.name as rule, r.concurrency, r.rate, r.per, r.burst, r.breaker_after, r.breaker_for,
       r.breaker_counts, coalesce(s.held, f.held, 0) as held,
       case when s.id is not null then holdfast.tokens_at(s.state, r, c.clock)
            when l.name not like '%:*' then r.burst end as tokens,
       coalesce(s.parked, f.parked, 0) as parked,
       case when s.parked > 0 then (
         with recursive heads as (  -- from one queue and priority to the next by the index, however many are parked
           (select p.queue, p.priority, p.parked_due_at
              from holdfast.steps p
             where p.limited_by = s.id and coalesce(p.parked_for, '') = 'limit'
             order by p.queue, p.priority desc, p.parked_due_at
             limit 1)
           union all
           select n.queue, n.priority, n.parked_due_at
             from heads b
            cross join lateral (
              (select p.queue, p.priority, p.parked_due_at
                 from holdfast.steps p
                where p.limited_by = s.id and coalesce(p.parked_for, '') = 'limit'
                  and p.queue = b.queue and p.priority < b.priority
                order by p.priority desc, p.parked_due_at
                limit 1)
              union all
              (select p.queue, p.priority, p.parked_due_at
                 from holdfast.steps p
                where p.limited_by = s.id and coalesce(p.parked_for, '') = 'limit' and p.queue > b.queue
                order by p.queue, p.priority desc, p.parked_due_at
                limit 1)
              limit 1) n)
         select min(h.parked_due_at) from heads h) end as oldest_parked_at,
       coalesce(s.wake_at, f.wake_at) as wake_at,
       nullif(case when p.is_paused then greatest(s.paused_until, r.paused_until) end, 'infinity') as paused_until,
       case when p.is_paused then coalesce(s.paused_by, r.paused_by) end as paused_by,
       case when p.is_paused then coalesce(s.pause_reason, r.pause_reason) end as reason,
       case when r.breaker_after is null then null
            when s.open_until is null then 'closed'
            when s.open_until > c.clock then 'open'
            else 'half-open' end as breaker,
       s.open_until, coalesce(s.failures, 0) as failures_in_a_row
  from (select n.name, n.tenant from holdfast.limits n
        union
        select n.name, n.tenant from states n) l
 cross join (select holdfast.clock() as clock) c
  left join lateral (
    select h as state, n.* from states n join holdfast.limit_states h on h.id = n.id
     where n.name = l.name and n.tenant = l.tenant) s on true
  left join lateral holdfast.limit_rule(l.name, l.tenant) r on true
  left join lateral (
    select sum(v.held)::int as held, sum(v.parked)::int as parked, min(v.wake_at) as wake_at
      from states v
     where l.name like '%:*' and v.tenant = l.tenant and holdfast.limit_family(v.name) = l.name
       and not exists (select from holdfast.limits o where o.name = v.name and o.tenant = v.tenant)) f on true
 cross join lateral (
   select coalesce(greatest(s.paused_until, r.paused_until) > c.clock, false) as is_paused) p
 where coalesce(l.tenant = '*' or l.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
grant select on holdfast.limit_list to hf_producer, hf_worker, hf_reader, hf_operator;
