-- Returns the status of a task by its counts: ready steps first, then steps in progress, then blocked steps, then
-- completion; otherwise it waits. A task that a person resolved is complete, whatever its steps are.
create or replace function flow.judge_counts(
  state text, total bigint, completed bigint, failed bigint, ready bigint, in_progress bigint, blocked bigint)
returns table (execution_status text, recommended_action text, completion_percentage numeric, health_status text)
language sql immutable
begin atomic
  select e.status,
         case e.status
           when 'has_ready_steps' then 'execute_ready_steps' when 'processing' then 'wait_for_completion'
           when 'blocked_by_failures' then 'handle_failures' when 'all_complete' then 'finalize_task'
           else 'wait_for_dependencies' end,
         coalesce(round(100.0 * judge_counts.completed / nullif(judge_counts.total, 0), 2), 100.00),
         case when judge_counts.total = 0 then 'unknown'
              when e.status = 'blocked_by_failures' then 'blocked'
              when judge_counts.failed > 0 and e.status <> 'all_complete' then 'recovering'
              else 'healthy' end
    from (select case
            when judge_counts.ready > 0 then 'has_ready_steps'
            when judge_counts.in_progress > 0 then 'processing'
            when judge_counts.blocked > 0 and judge_counts.state <> 'resolved_manually' then 'blocked_by_failures'
            when judge_counts.completed = judge_counts.total
              or judge_counts.state = 'resolved_manually' then 'all_complete'
            else 'waiting_for_dependencies' end as status) e;
end;
grant execute on function flow.judge_counts to hf_producer, hf_worker, hf_reader, hf_operator;
