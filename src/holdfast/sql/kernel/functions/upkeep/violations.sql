-- Lists every broken invariant by name and subject; a sound database has none. It reads all rows: use it in `doctor`
-- and in tests, not every minute.
create or replace function holdfast.violations()
returns table (invariant text, subject text, detail text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select holdfast.check_all_tenants('violations');  -- it names rows of all tenants
  with known as (
    select s.*, t.phase, t.outcome
      from holdfast.steps s left join holdfast.machine_states t on t.machine = s.machine and t.state = s.state),
  moved as (
    select j.*, lag(j.to_state) over story as came_from, lead(j.id) over story is null as is_last
      from holdfast.journal j
    window story as (partition by j.step_id, case when j.step_id is null then j.run_id end order by j.id))
  select 'state_is_known', 'step ' || s.id, format('%s has no state %s', s.machine, s.state)
    from known s where s.phase is null
  union all
  select 'held_has_a_lease', 'step ' || s.id, format('%s with lease %s', s.state, s.lease_id)
    from known s where s.phase <> 'open_or_held' and (s.phase = 'held') <> (s.lease_id is not null)
  union all
  select 'over_is_finished', 'step ' || s.id, format('%s, finished_at %s', s.state, s.finished_at)
    from known s where (s.phase = 'over' and s.finished_at is null)
      or (s.phase in ('open', 'shut', 'open_or_held') and s.finished_at is not null)
  union all
  select 'open_is_reachable', 'step ' || s.id, format('%s, but neither due, parked, held nor waiting', s.state)
    from known s
   where s.finished_at is null and s.waits = 0 and s.due_at is null and s.lease_id is null and s.parked_due_at is null
     and s.phase in ('open', 'open_or_over', 'open_or_held')
     -- A window has not reached it, or its run was stopped.
     and not exists (select from holdfast.runs r where r.id = s.run_id
                      and (r.window_size is not null or r.halt = 'stopped' or r.moving = 'reopened'))
  union all
  select 'machine_has_the_move', 'step ' || s.id, format('parked: %s lacks a move from %s', s.machine, s.state)
    from known s where s.parked_for = 'move'
  union all
  select 'priority_is_looked_at', 'step ' || s.id,
    format('priority %s, but claims from %s look up to %s', s.priority, s.queue, q.top_priority)
    from known s join holdfast.queues q on q.queue = s.queue
   where s.finished_at is null and s.priority > q.top_priority
  union all
  select 'waits_for_parents', 'step ' || s.id, format('waits is %s, parents not done %s', s.waits, p.open)
    from known s,
         lateral (select count(*) filter (where q.finished_at is null or not holdfast.is_success(q.outcome)) as open
                    from holdfast.edges e join known q on q.id = e.step_id where e.next_id = s.id) p
   where s.run_id is not null and s.waits <> p.open
  union all
  select 'lease_is_held_once', 'lease ' || s.lease_id, format('%s steps hold it', count(*))
    from known s where s.lease_id is not null group by s.lease_id having count(*) > 1
  union all
  select 'lease_was_rescued', 'step ' || s.id, format('its lease ended %s', s.lease_until)
    from known s where s.lease_until < holdfast.clock() - interval '10 minutes'
  union all
  select 'step_is_in_its_run', 'step ' || s.id, format('run %s does not have it', s.run_id)
    from known s
   where s.run_id is not null
     and not exists (select from holdfast.run_steps n where n.run_id = s.run_id and n.step_id = s.id)
  union all
  select 'run_counts_its_steps', 'run ' || r.id,
         format('total %s live %s succeeded %s failed %s cancelled %s, counted %s', r.total, r.live, r.succeeded,
                r.failed, r.cancelled, c)
    from holdfast.runs r, lateral holdfast.count_steps(r.id) c
   where (r.total, r.live, r.succeeded, r.failed, r.cancelled) is distinct
     from (c.total, c.live, c.succeeded, c.failed, c.cancelled)
  union all
  select 'run_without_live_steps_is_over', 'run ' || r.id, format('%s with %s steps', r.state, r.total)
    from holdfast.runs r where r.live = 0 and r.total > 0 and r.finished_at is null and r.moving is null
     and r.to_admit = 0
     and not exists (select from holdfast.machine_states t where t.machine = r.machine
                     and t.state = r.state and t.phase = 'shut')
  union all
  -- A plan is staged in the transaction that starts the run, or soon after it.
  select 'run_has_steps', 'run ' || r.id, format('%s without steps since %s; cancel it', r.state, r.created_at)
    from holdfast.runs r where r.total = 0 and r.finished_at is null
      and r.created_at < holdfast.clock() - interval '1 hour'
     and not exists (select from holdfast.machine_states t where t.machine = r.machine
                     and t.state = r.state and t.phase = 'shut')
  union all
  select 'run_that_is_over_has_no_live_steps', 'run ' || r.id, format('%s with %s live steps', r.state, r.live)
    from holdfast.runs r where r.live > 0 and r.finished_at is not null and r.moving is null
  union all
  select 'journal_is_a_chain', 'journal ' || j.id,
    format('%s came from %s, the last move led to %s', j.event, j.from_state, j.came_from)
    from moved j where j.came_from <> j.from_state
  union all
  select 'journal_ends_where_the_row_is', 'step ' || s.id, format('it is %s, the journal says %s', s.state, j.to_state)
    from moved j join holdfast.steps s on s.id = j.step_id
   where j.is_last and (j.to_state, coalesce(j.attempt, 0)) is distinct from (s.state, s.attempt)
  union all
  select 'journal_ends_where_the_row_is', 'run ' || r.id, format('it is %s, the journal says %s', r.state, j.to_state)
    from moved j join holdfast.runs r on r.id = j.run_id and j.step_id is null
   where j.is_last and j.to_state <> r.state
  union all
  select 'moved_is_journaled', 'step ' || s.id, format('%s by %s and nothing in the journal', s.state, s.last_event)
    from known s
   where s.last_event is not null and not exists (select from holdfast.journal j where j.step_id = s.id)
     and s.created_at > (select min(j.at) from holdfast.journal j)
  union all
  select w.invariant, w.subject, w.detail from holdfast.window_violations() w
  union all
  select l.invariant, l.subject, l.detail from holdfast.limit_violations() l
  union all
  select c.invariant, c.subject, c.detail from holdfast.schedule_violations() c
  union all
  select r.invariant, r.subject, r.detail from holdfast.retention_violations() r
  union all
  select g.invariant, g.subject, g.detail from holdfast.guard_violations() g
  union all
  select f.invariant, f.subject, f.detail from holdfast.face_violations() f
$$;
grant execute on function holdfast.violations to hf_operator;
