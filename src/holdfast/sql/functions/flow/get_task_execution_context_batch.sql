-- Where tasks stand, one row each: their steps counted, what that comes to and what is to be done. Blocked are steps that were given
-- up (failed for good, or cancelled). What counts first: ready, in progress, blocked, all complete, and else it waits.
create or replace function flow.get_task_execution_context_batch(task_ids uuid[])
returns setof flow.task_execution_context
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with counted as (
    select t.task_id, t.name, t.namespace, t.version, t.state, count(b.step_id) as total,
           count(*) filter (where b.current_state = 'pending') as pending, count(*) filter (where b.in_process) as in_progress,
           count(*) filter (where b.processed) as completed, count(*) filter (where b.current_state = 'error') as failed,
           count(*) filter (where b.ready_for_execution) as ready,
           count(*) filter (where b.current_state = 'cancelled' or (b.current_state = 'error' and b.next_retry_at is null)) as blocked,
           min(b.next_retry_at) as earliest_retry_at
      from unnest(get_task_execution_context_batch.task_ids) u (id)
      join flow.tasks t on t.task_id = u.id
      left join flow.get_step_readiness_status_batch(get_task_execution_context_batch.task_ids) b on b.task_id = t.task_id
     group by t.task_id, t.name, t.namespace, t.version, t.state)
  select c.task_id, c.name, c.namespace, c.version, c.state, c.total, c.pending, c.in_progress, c.completed, c.failed, c.ready,
         c.blocked, e.status, case e.status
           when 'has_ready_steps' then 'execute_ready_steps' when 'processing' then 'wait_for_completion'
           when 'blocked_by_failures' then 'handle_failures' when 'all_complete' then 'finalize_task'
           else 'wait_for_dependencies' end,
         coalesce(round(100.0 * c.completed / nullif(c.total, 0), 2), 100.00),
         case when c.total = 0 then 'unknown'
              when e.status = 'blocked_by_failures' then 'blocked'
              when c.failed > 0 and e.status <> 'all_complete' then 'recovering'
              else 'healthy' end,
         c.earliest_retry_at
    from counted c,
         lateral (select case
                    when c.ready > 0 then 'has_ready_steps'
                    when c.in_progress > 0 then 'processing'
                    when c.blocked > 0 and c.state <> 'resolved_manually' then 'blocked_by_failures'
                    when c.completed = c.total or c.state = 'resolved_manually' then 'all_complete'
                    else 'waiting_for_dependencies' end as status) e
   order by c.task_id;
end
$$;
