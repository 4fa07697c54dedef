-- Returns where a task stands: counts of its steps, its status and the recommended action. No row if there is no such
-- task.
create or replace function flow.get_task_execution_context(task_id uuid)
returns setof flow.task_execution_context
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select c.* from flow.get_task_execution_context_batch(array[get_task_execution_context.task_id]) c;
end
$$;
grant execute on function flow.get_task_execution_context to hf_producer, hf_worker, hf_reader, hf_operator;
