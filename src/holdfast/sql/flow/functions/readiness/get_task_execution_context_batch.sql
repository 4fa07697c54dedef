-- Returns where tasks stand, one row each: counts of their steps, status and recommended action (flow.judge_counts).
-- Blocked steps are those that failed for good or were cancelled.
create or replace function flow.get_task_execution_context_batch(task_ids uuid[])
returns setof flow.task_execution_context
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with counted as (
    select t.task_id, t.name, t.namespace, t.version, t.state, count(b.step_id) as total,
           count(*) filter (where b.current_state = 'pending') as pending,
             count(*) filter (where b.in_process) as in_progress,
           count(*) filter (where b.processed) as completed,
             count(*) filter (where b.current_state = 'error') as failed,
           count(*) filter (where b.ready_for_execution) as ready,
           count(*) filter (where b.current_state = 'cancelled'
                            or (b.current_state = 'error' and b.next_retry_at is null)) as blocked,
           min(b.next_retry_at) as earliest_retry_at
      from unnest(get_task_execution_context_batch.task_ids) u (id)
      join flow.tasks t on t.task_id = u.id
      left join flow.get_step_readiness_status_batch(get_task_execution_context_batch.task_ids) b
        on b.task_id = t.task_id
     group by t.task_id, t.name, t.namespace, t.version, t.state)
  select c.task_id, c.name, c.namespace, c.version, c.state, c.total, c.pending, c.in_progress,
    c.completed, c.failed, c.ready,
         c.blocked, j.execution_status, j.recommended_action, j.completion_percentage,
           j.health_status, c.earliest_retry_at
    from counted c
   cross join lateral flow.judge_counts(c.state, c.total, c.completed, c.failed, c.ready, c.in_progress, c.blocked) j
   order by c.task_id;
end
$$;
grant execute on function flow.get_task_execution_context_batch to hf_producer, hf_worker, hf_reader, hf_operator;
