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
      select (c.limit_id, c.event, c.error_type, sum(c.held), sum(c.parked),
              array_agg(c.id) filter (where c.event is not null))::holdfast.limit_change
        from (select h.limit_id, -1 as held, 0 as parked, o.id,
                     case when n.lease_id is distinct from o.lease_id then
                       case when announced is null then 'by_hand' else n.last_event end end as event,
                     case when n.lease_id is distinct from o.lease_id then n.error ->> 'type' end as error_type
                from o join n on n.id = o.id cross join unnest(o.holds) h (limit_id)
               where o.lease_id is not null
              union all
              select h.limit_id, 1, 0, n.id, null, null from n cross join unnest(n.holds) h (limit_id)
               where n.lease_id is not null
              union all
              select o.limited_by, 0, -1, o.id, null, null from o where o.parked_for = 'limit'
              union all
              select n.limited_by, 0, 1, n.id, null, null from n where n.parked_for = 'limit') c
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
