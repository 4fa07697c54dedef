-- Starts one task: a step without a run, served by the handler called `name`. What is null comes from the kind's defaults.
-- `key` is idempotency for good: the same key and input give the same task, another input is refused. `unique_key` is
-- uniqueness while open: as long as one is not over, starting gives that one.
create or replace function holdfast.start_task(
  name text, input jsonb default '{}', queue text default null, key text default null, unique_key text default null,
  due_at timestamptz default null, priority int default 0, tenant text default 'default')
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column  -- on conflict names its columns bare
declare
  clock constant timestamptz := holdfast.clock();
  kind_queue text;
  kind_policy text;
  into_queue text;
  hash bytea;
  own_id bigint;  -- given out with the key
  step_id bigint;
begin
  if (holdfast.is_name(start_task.name) and start_task.priority between 0 and 9
      and coalesce(pg_column_size(start_task.input) <= 1048576 and holdfast.is_in_reach(start_task.due_at), true)
      and coalesce(holdfast.is_name(start_task.key, 400), true)
      and coalesce(holdfast.is_name(start_task.unique_key, 400), true)) is not true then  -- one expression: a call costs more
    perform holdfast.check_start(start_task.name, start_task.input, start_task.priority);
    perform holdfast.check_name('key', start_task.key, 400);
    perform holdfast.check_name('unique_key', start_task.unique_key, 400);
    perform holdfast.check_due(start_task.due_at);
  end if;
  perform holdfast.check_tenant(start_task.tenant);
  select k.queue, k.policy into kind_queue, kind_policy from holdfast.kinds k  -- as kinds_of has it, at half the cost
   where k.kind = start_task.name and k.tenant = case
           when exists (select from holdfast.kinds o where o.kind = start_task.name and o.tenant = start_task.tenant)
           then start_task.tenant else '*' end;
  into_queue := coalesce(start_task.queue, kind_queue, 'default');
  if start_task.key is not null then
    hash := sha256(convert_to(start_task.name || ' ' || coalesce(start_task.input, '{}')::text, 'UTF8'));
    own_id := nextval('holdfast.step_ids');
    insert into holdfast.keys values (start_task.tenant, start_task.key, own_id::text, hash) on conflict do nothing;
    if not found then
      return holdfast.id_of_key(start_task.tenant, start_task.key, hash)::bigint;
    end if;
  end if;
  if not exists (select from holdfast.queues q where q.queue = into_queue and q.top_priority >= start_task.priority) then
    perform holdfast.check_name('queue', into_queue);  -- one that is there was checked when it was made
    perform holdfast.remember_queues(array[into_queue], array[start_task.priority]);
  end if;
  loop
    insert into holdfast.steps (id, machine, state, kind, queue, tenant, policy, unique_key, priority, due_at, created_at, input)
    values (coalesce(own_id, nextval('holdfast.step_ids')), 'work.task',
            (select m.state from holdfast.machine_states m where m.machine = 'work.task' and m.is_initial),
            start_task.name, into_queue, start_task.tenant, kind_policy, start_task.unique_key, start_task.priority,
            coalesce(start_task.due_at, clock), clock, coalesce(start_task.input, '{}'))
    on conflict (tenant, unique_key) where unique_key is not null and finished_at is null do nothing
    returning id into step_id;
    exit when found;
    select s.id into step_id from holdfast.steps s
     where s.tenant = start_task.tenant and s.unique_key = start_task.unique_key and s.finished_at is null;
    if found then
      update holdfast.keys k set id = step_id::text where k.tenant = start_task.tenant and k.key = start_task.key;
      return step_id;
    end if;  -- it ended in between: try again
  end loop;
  perform holdfast.wake(array[into_queue]);
  return step_id;
end
$$;
grant execute on function holdfast.start_task to hf_producer, hf_worker, hf_operator;
