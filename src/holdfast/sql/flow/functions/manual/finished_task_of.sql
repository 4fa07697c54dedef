-- Returns the task of a flow's step, locked. Refuses a task that is not over or that the login may not act for.
create or replace function flow.finished_task_of(step_id bigint)
returns holdfast.runs
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  task holdfast.runs;
begin
  select r.* into task
    from holdfast.steps s join holdfast.runs r on r.id = s.run_id
   where s.id = finished_task_of.step_id and r.machine = 'flow.task' and holdfast.matches_any(allowed, r.tenant)
     for update of r;
  if task.id is null then
    perform holdfast.refuse_pruned(finished_task_of.step_id::text);
    perform holdfast.refuse('RN004', format('there is no step %s of a flow''s task', finished_task_of.step_id),
                            'flow.steps lists them', finished_task_of.step_id::text);
  end if;
  if task.finished_at is null then
    perform holdfast.refuse('RN010', format('task %s is %s, not finished', task.id, task.state),
                            'retry its failed step with holdfast.retry, or cancel the task first', task.id::text);
  end if;
  return task;
end
$$;
