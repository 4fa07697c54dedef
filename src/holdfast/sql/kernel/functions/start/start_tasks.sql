-- Starts tasks from an array of objects with the names of start_task's parameters, all or none, and gives their ids in
-- the array's order.
create or replace function holdfast.start_tasks(tasks jsonb)
returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task record;
  ids bigint[] := '{}';
  odd text;
begin
  if jsonb_typeof(start_tasks.tasks) is distinct from 'array' then
    perform holdfast.refuse('RN005', 'tasks are an array of objects',
                            '[{"name": "mail", "input": {"to": "a@b"}}]', 'tasks');
  end if;
  select k into odd
    from jsonb_array_elements(start_tasks.tasks) o, lateral jsonb_object_keys(
           case when jsonb_typeof(o) = 'object' then o else jsonb_build_object(left(o::text, 50), 0) end) k
   where k not in ('name', 'input', 'queue', 'key', 'unique_key', 'due_at', 'priority', 'tenant', 'limits',
                   'weight', 'key_for', 'batch_key')
   limit 1;
  if odd is not null then
    perform holdfast.refuse('RN005', format('a task has no %s', odd),
                            'it has name, input, queue, key, unique_key, due_at, priority, tenant, limits, '
                            'weight, key_for and batch_key');
  end if;
  for task in
    select * from jsonb_to_recordset(start_tasks.tasks) o (
      name text, input jsonb, queue text, key text, unique_key text, due_at timestamptz, priority int, tenant text,
      limits text[], weight numeric, key_for interval, batch_key text)
  loop
    ids := ids || holdfast.start_task(task.name, coalesce(task.input, '{}'), task.queue, task.key,
                                      task.unique_key, task.due_at,
                                      coalesce(task.priority, 0), coalesce(task.tenant, 'default'),
                                      task.limits, task.weight, task.key_for, task.batch_key);
  end loop;
  return query select unnest(ids);
end
$$;
grant execute on function holdfast.start_tasks to hf_producer, hf_worker, hf_operator;
