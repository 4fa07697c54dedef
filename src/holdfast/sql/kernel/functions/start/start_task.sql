-- Starts one task: a step of `work.task`, served by the handler called `name` (start_step).
create or replace function holdfast.start_task(
  name text, input jsonb default '{}', queue text default null, key text default null, unique_key text default null,
  due_at timestamptz default null, priority int default 0, tenant text default 'default',
  limits text[] default null, weight numeric default null, key_for interval default null,
  batch_key text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return holdfast.make_step('work.task', start_task.name, start_task.input, start_task.queue, start_task.key,
                            start_task.unique_key, start_task.due_at, start_task.priority, start_task.tenant,
                            limits => start_task.limits, weight => start_task.weight,
                            key_for => start_task.key_for, batch_key => start_task.batch_key);
end
$$;
grant execute on function holdfast.start_task to hf_producer, hf_worker, hf_operator;
