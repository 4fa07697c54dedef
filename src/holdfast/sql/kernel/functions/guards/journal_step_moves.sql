-- The UPDATE trigger of steps: refuses rows that break a rule (broken_rule), journals each move, by set, and refuses a
-- move that the row's machine does not list, or lists for other actors only. A row has moved when its state or its
-- lease number changed. A change that no kernel function announced is `by_hand`: it may make any move that the machine
-- lists, with the columns that the new state needs, and the kernel then catches up (waiting children, the run's
-- counts). A machine's `moved` function is called with its moves. Limits count their holders and their queues here, so
-- that nothing that sets or clears a lease can forget them. A claim of steps that were not admitted makes two moves at
-- once (lease_unadmitted): `passed` is the state between them, and both are checked and journaled.
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
  passed constant text := case when announced is not null then nullif(current_setting('holdfast.passed', true), '') end;
  login constant text := case when announced in ('user', 'api') and actor <> session_user then session_user end;
  limit_ids bigint[];
  held int[];
  parked int[];
  seen record;
begin
  -- Most statements move only steps of machines that listen to nothing, and need no join for them. One statement reads
  -- all that decides what is to be done, because each further one costs as much as several of these.
  select min(holdfast.broken_rule(n)) as broken,
         bool_or(n.machine = any (array(
           select c.machine from holdfast.machines c where c.moved is not null))) as is_told,
         exists (select from holdfast.limit_states) as is_limited
    into seen
    from n;
  if passed is not null then  -- guard: cleared; a face's function may move other steps
    perform set_config('holdfast.passed', '', true);
  end if;
  if seen.broken is not null then  -- guard: sound
    perform holdfast.refuse_broken(seen.broken);
  end if;
  if announced is null then
    perform holdfast.check_by_hand('step', n.machine, n.id::text, o.machine, o.state, n.state, n.lease_id is not null,
                                   n.finished_at is not null)
       from o join n on n.id = o.id;
    perform holdfast.check_budget_by_hand(n) from o join n on n.id = o.id where n.failures > o.failures;
  end if;
  if passed is not null then  -- guard: both
    insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor,
                                  step_id, run_id, attempt)
    select clock, n.tenant, n.machine, o.state, 'queued',
           case when m.to_state = passed and 'system' = any (m.actors)  -- guard: passed
                then passed
                else holdfast.refuse_move(n.machine, o.state, 'queued', passed, 'system', n.id::text) end,
           'system', 'window', n.id, n.run_id, o.attempt
      from o
      join n on n.id = o.id
      left join holdfast.machine_moves m on m.machine = o.machine and m.from_state = o.state and m.event = 'queued';
  end if;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor,
                                step_id, run_id, attempt, lease_id, reason, error, login)
  select clock, n.tenant, n.machine, coalesce(passed, o.state),
         case when announced is null then 'by_hand' else n.last_event end,
         -- Null-safe: a move that is not found is not equal.
         case when announced is null or (
                m.to_state = n.state  -- guard: move
                and announced = any (m.actors)  -- guard: actor
              ) then n.state
              else holdfast.refuse_move(n.machine, coalesce(passed, o.state), n.last_event, n.state, announced,
                                        n.id::text) end,
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
    left join holdfast.machine_moves m
      on m.machine = o.machine and m.from_state = coalesce(passed, o.state) and m.event = n.last_event
   where o.state <> n.state or o.lease_id is distinct from n.lease_id;
  if seen.is_told and announced is not null then  -- the join and the call are for what the machine listens to
    select bool_or(c.moved_by is null
                   or c.moved_by && array[e.last_event, case when passed is not null then 'queued' end])
      into seen.is_told
      from (select n.machine, n.last_event from n group by n.machine, n.last_event) e
      join holdfast.machines c on c.machine = e.machine;
  end if;
  if seen.is_told and passed is not null then
    perform holdfast.call_moved(
       g.machine, array_agg((g.run_id, g.from_state, 'queued', passed, g.step_ids)::holdfast.shared_move))
       from (select n.machine, n.run_id, o.state as from_state, array_agg(n.id) as step_ids
               from o join n on n.id = o.id
              where n.machine = any (array(select c.machine from holdfast.machines c where c.moved is not null))
              group by n.machine, n.run_id, o.state) g
      group by g.machine;
  end if;
  if seen.is_told then
    perform holdfast.call_moved(
       g.machine, array_agg((g.run_id, g.from_state, g.event, g.to_state, g.step_ids)::holdfast.shared_move))
       from (select n.machine, n.run_id, coalesce(passed, o.state) as from_state, n.state as to_state,
                    array_agg(n.id) as step_ids,
                    case when announced is null then 'by_hand' else n.last_event end as event
               from o join n on n.id = o.id
              where n.machine = any (array(select c.machine from holdfast.machines c where c.moved is not null))
                and (o.state <> n.state or o.lease_id is distinct from n.lease_id)
              group by n.machine, n.run_id, o.state, n.state, event) g
      group by g.machine;
  end if;
  if seen.is_limited then
    select array_agg(c.limit_id), array_agg(c.held), array_agg(c.parked) into limit_ids, held, parked
      from (select u.limit_id, sum(u.held)::int as held, sum(u.parked)::int as parked
              from (select unnest(case when o.lease_id is not null then o.holds else array[o.limited_by] end)
                             as limit_id,
                           -(o.lease_id is not null)::int as held, -(o.lease_id is null)::int as parked
                      from o
                     where o.lease_id is not null or o.parked_for = 'limit'  -- early columns: the others are not read
                    union all
                    select unnest(case when n.lease_id is not null then n.holds else array[n.limited_by] end),
                           (n.lease_id is not null)::int, (n.lease_id is null)::int
                      from n
                     where n.lease_id is not null or n.parked_for = 'limit') u
             where u.limit_id is not null
             group by u.limit_id
            having sum(u.held) <> 0 or sum(u.parked) <> 0) c;
    if limit_ids is not null then
      -- Breakers need to know how each step lost its lease, and which was the probe.
      perform holdfast.count_limits(limit_ids, held, parked, case when exists (
        select from holdfast.limits r where r.breaker_after is not null) then array(
        select (e.limit_id, e.event, e.error_type, -count(*), 0, array_agg(e.id))::holdfast.limit_change
          from (select unnest(o.holds) as limit_id, o.id, n.error ->> 'type' as error_type,
                       case when announced is null then 'by_hand' else n.last_event end as event
                  from o join n on n.id = o.id
                 where o.lease_id is not null and n.lease_id is distinct from o.lease_id) e
         group by e.limit_id, e.event, e.error_type) end, clock);
    end if;
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
