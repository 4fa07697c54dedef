-- Moves each step by the event given for it, fenced by the lease that it must be under (null: none), and returns the
-- steps that moved. It also does everything that follows from a move: the columns of the new state, waiting children,
-- the run's counts and its closing. The caller has called set_actor, and passes the clock that its due times are based
-- on. A step whose machine has no such move, but has `started` and the move after that, makes both; a step that has
-- neither is omitted.
create or replace function holdfast.move_steps(moves holdfast.step_move[], clock timestamptz default holdfast.clock())
returns setof holdfast.settled_step
language plpgsql
set search_path = pg_catalog, pg_temp
-- with `any` and `lateral` below: each step once and by primary key, whatever the statistics say
set enable_hashjoin = on
set enable_nestloop = off
set enable_mergejoin = off
set enable_seqscan = off
set jit = off
as $$
declare
  deltas holdfast.run_delta[];
  parents bigint[];
  unadmitted bigint[];
  moved holdfast.settled_step[];
begin
  perform holdfast.start_silent_steps(move_steps.moves);
  -- Materialized: otherwise a generic plan looks up and locks each step once per move of that event.
  with locked as materialized (
    select v.*, s.machine, s.from_state, s.was_live, s.was_finished, s.was_unadmitted
      from (select * from unnest(move_steps.moves) order by step_id) v
     cross join lateral (
       select h.machine, h.state as from_state, holdfast.is_live(h) as was_live,
              h.finished_at is not null as was_finished, holdfast.is_unadmitted(h) as was_unadmitted
         from holdfast.steps h
        where h.id = v.step_id
          and h.lease_id is not distinct from v.lease_id  -- guard: lease
          for update) s),
  before as materialized (
    select l.*, m.to_state, t.phase, t.outcome, case when l.was_finished then f.outcome end as was_outcome,
           t.phase = 'over' or (t.phase = 'open_or_over' and l.event not in ('retried', 'expired')) as is_over
      from locked l
      join holdfast.machine_moves m on m.machine = l.machine and m.from_state = l.from_state and m.event = l.event
      join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state
      join holdfast.machine_states f on f.machine = m.machine and f.state = m.from_state),
  after as (
    update holdfast.steps s
       set state = b.to_state, last_event = b.event,
           lease_id = case when b.phase = 'held' then s.lease_id end,
           lease_owner = case when b.phase = 'held' then s.lease_owner end,
           lease_until = case when b.phase = 'held' then s.lease_until end,
           due_at = case when not b.is_over and b.phase <> 'held' and s.waits = 0 then b.due_at end,
           finished_at = case when b.is_over then move_steps.clock end,
           parked_due_at = null, parked_for = null, limited_by = null,
           failures = case when b.event in ('retried', 'failed', 'expired') then
                             s.failures + 1  -- guard: failures
                           when b.event in ('continued', 'reopened') then 0  -- guard: fresh-budget
                           else s.failures end,
           failed_at = case when b.event in ('retried', 'failed', 'expired') then move_steps.clock else s.failed_at end,
           cursor = case when b.event = 'continued' then b.cursor else s.cursor end,
           result = case when b.event = 'succeeded' or (b.event = 'resolved' and b.result is not null)
             then b.result else s.result end,
           error = case when b.event in ('retried', 'failed', 'expired') then b.error
                        when b.event <> 'succeeded' then s.error end
      from before b
     where s.id = b.step_id and s.id = any (array(select b.step_id from before b))
    returning s.id, s.run_id, s.state, b.event, b.was_live, b.was_outcome, b.is_over, b.outcome,
      holdfast.is_live(s) as is_live, b.was_unadmitted)
  select array_agg((a.id, a.event, a.state)::holdfast.settled_step),
         array_agg(a.id) filter (
           where a.is_over and holdfast.is_success(a.outcome) and holdfast.is_success(a.was_outcome) is not true
             and a.run_id is not null),
         array_agg((a.run_id, 0, a.is_live::int - a.was_live::int,
                    (a.is_over and holdfast.is_success(a.outcome))::int
                      - coalesce(holdfast.is_success(a.was_outcome), false)::int,
                    (a.is_over and a.outcome = 'failed')::int - coalesce(a.was_outcome = 'failed', false)::int,
                    (a.is_over and a.outcome = 'cancelled')::int - coalesce(a.was_outcome = 'cancelled', false)::int
                   )::holdfast.run_delta) filter (where a.run_id is not null),
         array_agg(a.id) filter (where a.is_over and a.was_unadmitted and a.run_id is not null)
    into moved, parents, deltas, unadmitted
    from after a;
  if deltas is not null then
    if parents is not null then
      deltas := deltas || holdfast.admit_children(parents, move_steps.clock);
    end if;
    if unadmitted is not null then
      perform holdfast.leave_window(unadmitted);  -- guard: window
    end if;
    perform holdfast.tally_runs(
      deltas, move_steps.clock, array(select m.step_id from unnest(moved) m));
  end if;
  return query select m.* from unnest(moved) m;
end
$$;
