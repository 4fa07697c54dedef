-- The UPDATE trigger of steps: journals each move, by set, and refuses a move that the row's machine does not list, or
-- lists for other actors only. A row has moved when its state or its lease number changed. A change that no kernel
-- function announced is `by_hand`: it may make any move that the machine lists, with the columns that the new state
-- needs, and the kernel then catches up (waiting children, the run's counts). A machine's `moved` function is called
-- with its moves. Limits count their holders and their queues here, so that nothing that sets or clears a lease can
-- forget them.
create or replace function holdfast.journal_step_moves()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on      -- both sides are transition tables: a nested loop over them is quadratic
set enable_seqscan = on
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := current_setting('holdfast.actor', true);
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
  login constant text := case when announced in ('user', 'api') and actor <> session_user then session_user end;
  listening constant text[] := array(select c.machine from holdfast.machines c where c.moved is not null);
  is_limited constant boolean := exists (select from holdfast.limit_states);
  has_breakers constant boolean := is_limited and exists (
    select from holdfast.limits r where r.breaker_after is not null);
begin
  if announced is null then
    perform holdfast.check_by_hand('step', n.machine, n.id::text, o.machine, o.state, n.state, n.lease_id is not null,
                                   n.finished_at is not null)
       from o join n on n.id = o.id;
  end if;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor,
                                step_id, run_id, attempt, lease_id, reason, error, login)
  select clock, n.tenant, n.machine, o.state, case when announced is null then 'by_hand' else n.last_event end,
         -- Null-safe: a move that is not found is not equal.
         case when announced is null or (
                m.to_state = n.state  -- guard: move
                and announced = any (m.actors)  -- guard: actor
              ) then n.state
              else holdfast.refuse_move(n.machine, o.state, n.last_event, n.state, announced, n.id::text) end,
         coalesce(announced, 'user'),
         case announced when 'worker' then coalesce(o.lease_owner, actor)
                        else coalesce(nullif(actor, ''), session_user) end,
         n.id, n.run_id, n.attempt, coalesce(o.lease_id, n.lease_id), reason,
         -- Each failed attempt has its error, also if it is equal to the previous one.
         case when n.error is distinct from o.error
                or (announced is not null and n.last_event in ('retried', 'failed', 'expired')) then n.error end,
         login
    from o
    join n on n.id = o.id
    left join holdfast.machine_moves m on m.machine = o.machine and m.from_state = o.state and m.event = n.last_event
   where o.state <> n.state or o.lease_id is distinct from n.lease_id;
  -- Asked first: most statements move only steps of machines that listen to nothing, and need no join.
  if listening <> '{}' and exists (select from n where n.machine = any (listening)) then
    perform holdfast.call_moved(
       g.machine, array_agg((g.run_id, g.from_state, g.event, g.to_state, g.step_ids)::holdfast.shared_move))
       from (select n.machine, n.run_id, o.state as from_state, n.state as to_state, array_agg(n.id) as step_ids,
                    case when announced is null then 'by_hand' else n.last_event end as event
               from o join n on n.id = o.id
              where n.machine = any (listening) and (o.state <> n.state or o.lease_id is distinct from n.lease_id)
              group by n.machine, n.run_id, o.state, n.state, event) g
      group by g.machine;
  end if;
  if is_limited then
    perform holdfast.count_limits(array(
      -- Steps that are alike are counted together. Breakers need to know how each ended, and which was the probe.
      with alike as materialized (
        select case when o.lease_id is not null then o.holds end as held_before,
               case when n.lease_id is not null then n.holds end as held_now,
               case when o.parked_for = 'limit' then o.limited_by end as parked_before,
               case when n.parked_for = 'limit' then n.limited_by end as parked_now,
               case when has_breakers and n.lease_id is distinct from o.lease_id then
                 case when announced is null then 'by_hand' else n.last_event end end as event,
               case when has_breakers and n.lease_id is distinct from o.lease_id then n.error ->> 'type' end
                 as error_type,
               case when has_breakers then o.id end as step_id, count(*)::int as steps
          from o join n on n.id = o.id
         where coalesce(o.holds, n.holds) is not null or coalesce(o.limited_by, n.limited_by) is not null
         group by 1, 2, 3, 4, 5, 6, 7)
      select (c.limit_id, c.event, c.error_type, sum(c.held), sum(c.parked),
              array_agg(c.step_id) filter (where c.event is not null))::holdfast.limit_change
        from (select h.limit_id, -a.steps as held, 0 as parked, a.step_id, a.event, a.error_type
                from alike a cross join unnest(a.held_before) h (limit_id)
              union all
              select h.limit_id, a.steps, 0, null, null, null from alike a cross join unnest(a.held_now) h (limit_id)
              union all
              select a.parked_before, 0, -a.steps, null, null, null from alike a
              union all
              select a.parked_now, 0, a.steps, null, null, null from alike a) c
       where c.limit_id is not null
       group by c.limit_id, c.event, c.error_type
      having sum(c.held) <> 0 or sum(c.parked) <> 0), clock);
  end if;
  if announced is null then
    perform holdfast.remember_queues(array_agg(q.queue), array_agg(q.priority))
       from (select n.queue, max(n.priority)::int as priority from n group by n.queue) q;
    perform holdfast.catch_up_by_hand(
      array(select n.id from o join n on n.id = o.id where o.state <> n.state and n.run_id is not null),
      array(select distinct n.run_id from o join n on n.id = o.id
             where n.run_id is not null
               and (o.state <> n.state or o.finished_at is distinct from n.finished_at
                    or holdfast.is_live(o) <> holdfast.is_live(n))));
  end if;
  return null;
end
$$;
