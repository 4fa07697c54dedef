-- Starts a step as start_step and start_task say. `is_by_face` is true only where the face of the machine itself starts
-- it: a machine with `started_by` has no other start. Logins cannot call this function, and so cannot claim to be it.
create or replace function holdfast.make_step(
  machine text, kind text, input jsonb default '{}', queue text default null, key text default null,
  unique_key text default null, due_at timestamptz default null, priority int default 0,
  tenant text default 'default', policy text default null, parked_for text default null, actor text default null,
  limits text[] default null, weight numeric default null, key_for interval default null,
  batch_key text default null, is_by_face boolean default false)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column  -- `on conflict` cannot qualify its columns
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  due timestamptz := coalesce(make_step.due_at, clock);
  parked_due timestamptz;
  kind_queue text;
  own_policy text;
  kind_limits text[];
  kind_weight text;
  call_weight numeric;
  kind_batch int;
  kind_by text;
  own_batch_key text;
  own_limits text[];
  own_weight numeric;
  is_known_queue boolean;
  has_rules boolean;
  is_awaited boolean;
  into_queue text;
  hash bytea;
  own_state text;
  own_id bigint;  -- allocated with the key
  step_id bigint;
  step_machine text;
begin
  if (holdfast.is_name(make_step.kind) and make_step.priority between 0 and 9
      and coalesce(pg_column_size(make_step.input) <= 1048576 and holdfast.is_in_reach(make_step.due_at), true)
      and coalesce(holdfast.is_name(make_step.key, 400), true)
      and coalesce(holdfast.is_name(make_step.unique_key, 400), true)
      and coalesce(holdfast.is_name(make_step.actor), true)) is not true then  -- a call costs more
    perform holdfast.check_start(make_step.kind, make_step.input, make_step.priority);
    perform holdfast.check_name('key', make_step.key, 400);
    perform holdfast.check_name('unique_key', make_step.unique_key, 400);
    perform holdfast.check_due(make_step.due_at);
    perform holdfast.check_name('actor', make_step.actor);
  end if;
  if (holdfast.is_name(make_step.tenant) and holdfast.matches_any(allowed, make_step.tenant)) is not true then
    perform holdfast.check_tenant(make_step.tenant);
  end if;
  -- All lookups of a start in one statement: each further one costs as much as several of them.
  select k.queue, k.policy, k.limits, k.weight, k.call_weight, k.batch, k.batch_by, t.state,
         case when t.phase = 'open' then due end,
         exists (select from holdfast.queues q
                  where q.queue = coalesce(make_step.queue, k.queue, 'default')
                    and q.top_priority >= make_step.priority),
         exists (select from holdfast.limits),
         exists (select from holdfast.workers w  -- usually none sleeps: a start then sends no hint
                  where w.is_asleep and w.queue = coalesce(make_step.queue, k.queue, 'default'))
    into kind_queue, own_policy, kind_limits, kind_weight, call_weight, kind_batch, kind_by, own_state,
         due, is_known_queue, has_rules, is_awaited
    from (select) one
    left join holdfast.kinds k  -- as kinds_of has it, at half the cost
      on k.kind = make_step.kind and k.tenant = case
           when exists (select from holdfast.kinds o where o.kind = make_step.kind and o.tenant = make_step.tenant)
           then make_step.tenant else '*' end
    left join (holdfast.machine_states t join holdfast.machines m on m.machine = t.machine and m.subject = 'step')
      on t.machine = make_step.machine and t.is_initial
     and (m.started_by is null or make_step.is_by_face);  -- guard: face
  if own_state is null then
    perform holdfast.initial_state(make_step.machine, 'step');  -- which refuses the machine
  end if;
  into_queue := coalesce(make_step.queue, kind_queue, 'default');
  if make_step.policy is not null then
    perform holdfast.check_policies(array[make_step.policy]);
    own_policy := coalesce((select p.policy from holdfast.policies p
                             where p.policy = holdfast.policy_name(make_step.policy, make_step.tenant)),
                           make_step.policy);
  end if;
  if make_step.parked_for is not null then
    perform holdfast.check_parking(make_step.parked_for);
    if due is null then
      perform holdfast.refuse(
        'RN005', format('a step of %s does not begin due and cannot be parked', make_step.machine),
        'park it when it is admitted');
    end if;
    parked_due := due;
    due := null;
  end if;
  if make_step.key_for is not null then
    perform holdfast.check_key_for(make_step.key, make_step.key_for);
  end if;
  if make_step.key is not null then
    -- Without the machine for a task, so that keys of earlier releases stay valid. No name contains a line break.
    hash := sha256(convert_to(
      case when make_step.machine = 'work.task' then '' else make_step.machine || E'\n' end
      || make_step.kind || ' ' || coalesce(make_step.input, '{}')::text, 'UTF8'));
    own_id := nextval('holdfast.step_ids');
    step_id := holdfast.take_key(make_step.tenant, make_step.key, own_id::text, hash, make_step.key_for)::bigint;
    if step_id <> own_id then
      return step_id;
    end if;
  end if;
  if has_rules or num_nonnulls(make_step.limits, make_step.weight, kind_limits, kind_weight, call_weight) > 0 then
    own_limits := holdfast.limits_for(make_step.limits, kind_limits, make_step.input);
    own_weight := holdfast.weight_for(make_step.weight, kind_weight, call_weight, make_step.input);
    perform holdfast.check_charge(own_limits, own_weight, into_queue, make_step.kind, make_step.tenant);
  end if;
  if kind_batch > 1 or make_step.batch_key is not null then
    own_batch_key := holdfast.batch_key_for(make_step.batch_key, kind_batch, kind_by, make_step.input);
  end if;
  if not is_known_queue then
    perform holdfast.check_name('queue', into_queue);  -- an existing queue was checked when it was made
    perform holdfast.remember_queues(array[into_queue], array[make_step.priority]);
  end if;
  loop
    insert into holdfast.steps (id, machine, state, kind, queue, tenant, policy, unique_key, priority, due_at,
                                parked_due_at, parked_for, created_at, input, limits, weight, batch_key)
    values (coalesce(own_id, nextval('holdfast.step_ids')), make_step.machine, own_state, make_step.kind, into_queue,
            make_step.tenant, own_policy, make_step.unique_key, make_step.priority, due, parked_due,
            make_step.parked_for, clock, coalesce(make_step.input, '{}'), own_limits, own_weight, own_batch_key)
    on conflict (tenant, unique_key) where unique_key is not null and finished_at is null do nothing
    returning id into step_id;
    exit when found;
    select s.id, s.machine into step_id, step_machine from holdfast.steps s
     where s.tenant = make_step.tenant and s.unique_key = make_step.unique_key and s.finished_at is null;
    continue when not found;  -- it ended in between: insert again
    if step_machine <> make_step.machine then
      perform holdfast.refuse(
        'RN003', format('unique_key %s is in use by step %s of %s', make_step.unique_key, step_id, step_machine),
        format('use another unique_key for a step of %s', make_step.machine));
    end if;
    update holdfast.keys k set id = step_id::text where k.tenant = make_step.tenant and k.key = make_step.key;
    return step_id;
  end loop;
  if make_step.actor is not null then
    insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor, step_id, attempt,
                                  login)
    values (clock, make_step.tenant, make_step.machine, 'new', 'created', own_state,
            coalesce(nullif(current_setting('holdfast.actor_kind', true), ''), 'api'), make_step.actor, step_id, 0,
            case when make_step.actor <> session_user then session_user end);
  end if;
  if due is not null and is_awaited then
    perform holdfast.wake(array[into_queue]);
  end if;
  return step_id;
end
$$;
