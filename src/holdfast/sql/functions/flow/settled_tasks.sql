-- Where the tasks of steps stand that `worker` has just settled, all that telling of it takes in one answer: the context of each task,
-- the time it was read, and what flow.touched_tasks says of it. Asked in the settle's transaction, it is what that settle decided.
create or replace function flow.settled_tasks(worker text, step_ids bigint[])
returns table (
  task_id uuid, name text, namespace text, version text, state text, total_steps bigint, pending_steps bigint,
  in_progress_steps bigint, completed_steps bigint, failed_steps bigint, ready_steps bigint, blocked_steps bigint,
  execution_status text, recommended_action text, completion_percentage numeric, health_status text,
  earliest_retry_at timestamptz, at timestamptz, steps jsonb, moves jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  return query
  with touched as materialized (
    select t.task_id, t.steps, t.moves from flow.touched_tasks(settled_tasks.worker, settled_tasks.step_ids) t)
  select c.*, clock, t.steps, t.moves
    from flow.get_task_execution_context_batch(array(select t.task_id from touched t)) c
    join touched t on t.task_id = c.task_id
   order by c.task_id;
end
$$;
