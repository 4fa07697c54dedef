-- Returns the state of the tasks whose steps `worker` has just settled: the context of each task, when it was read, and
-- what flow.touched_tasks returns for it. In the settle's transaction this is what that settle decided. Its cost does
-- not grow with the task. Totals, completed and given-up steps come from the task's own row. Steps that are ready, in
-- progress or backing off are counted among the steps around the settled ones (flow.steps_around): all steps of a task
-- of up to 300, and a lower bound for a larger one. Live steps outside that count as in progress for the status, and
-- nowhere else.
create or replace function flow.settled_tasks(worker text, step_ids bigint[])
returns table (
  task_id uuid, name text, namespace text, version text, state text, total_steps bigint, pending_steps bigint,
  in_progress_steps bigint, completed_steps bigint, failed_steps bigint, ready_steps bigint, blocked_steps bigint,
  execution_status text, recommended_action text, completion_percentage numeric, health_status text,
  earliest_retry_at timestamptz, at timestamptz, steps jsonb, moves jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- these tasks and a few of their steps, whatever the statistics say
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  return query
  select t.task_id, t.name, t.namespace, t.version, r.state, r.total::bigint,
         r.total - r.succeeded - r.failed - r.cancelled - a.retrying - a.in_progress,
           a.in_progress, r.succeeded::bigint,
         r.failed + a.retrying, a.ready, (r.failed + r.cancelled)::bigint, j.execution_status, j.recommended_action,
         j.completion_percentage, j.health_status, a.earliest_retry_at, clock, t.steps, t.moves
    from flow.touched_tasks(settled_tasks.worker, settled_tasks.step_ids) t
    join holdfast.runs r on r.id = t.task_id
   cross join lateral (
     select count(*) filter (where s.lease_id is not null) as in_progress,
            count(*) filter (where holdfast.is_ready(s, clock) and q.paused_at is null
                             and r.finished_at is null) as ready,
            count(*) filter (where s.state = 'error' and s.finished_at is null) as retrying,
            count(*) filter (where holdfast.is_live(s)) as live,
            min(case when s.state = 'error' then coalesce(s.due_at, s.parked_due_at) end) as earliest_retry_at
       from flow.steps_around(r, array(select k::bigint from jsonb_object_keys(t.steps) k)) n (id)
       join holdfast.steps s on s.id = n.id
       left join holdfast.queues q on q.queue = s.queue) a
   cross join lateral flow.judge_counts(
     r.state, r.total, r.succeeded, r.failed + a.retrying, a.ready, greatest(a.in_progress, r.live - a.live),
       r.failed + r.cancelled) j
   order by t.task_id;
end
$$;
grant execute on function flow.settled_tasks to hf_producer, hf_worker, hf_reader, hf_operator;
