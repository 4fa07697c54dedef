-- Adds planned steps (as in start_run) to a run. They may also wait for steps that the run already has. Returns the new
-- ids, in the order of the plan. The caller has called set_actor.
create or replace function holdfast.add_steps(run_id uuid, step_machine text, steps jsonb)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  begins constant text := holdfast.initial_state(add_steps.step_machine, 'step');
  outside text[];
  outside_ids bigint[];
  ids bigint[];
  parents bigint[];
  children bigint[];
begin
  perform holdfast.check_plan(add_steps.run_id, add_steps.steps);
  if jsonb_path_exists(add_steps.steps, '$[*] ? (@.due_at != null)')
     and exists (select from holdfast.runs r where r.id = add_steps.run_id and r.window_size is not null) then
    perform holdfast.refuse('RN005', format('steps of run %s cannot have a due time: its window admits them',
                                            add_steps.run_id), 'leave due_at out', 'due_at');
  end if;
  if exists (select from holdfast.runs r
              where r.id = add_steps.run_id and (r.window_size is not null or r.queued_at is null)) then
    perform pg_advisory_xact_lock(holdfast.run_lock(add_steps.run_id));  -- before steps, as lots do
  end if;
  outside := holdfast.outside_names(add_steps.steps);
  outside_ids := array(  -- by name, one by one: a join may read the whole run
    select (select n.step_id from holdfast.run_steps n where n.run_id = add_steps.run_id and n.name = u.name)
      from unnest(outside) u (name));
  ids := array(select nextval('holdfast.step_ids') from generate_series(1, jsonb_array_length(add_steps.steps)));
  -- Wait for parents that are being settled: that settle would not see the new edge.
  perform from holdfast.steps s where s.id = any (outside_ids) order by s.id for share;
  with planned as (
    select ids[p.no] as id, p.plan, p.plan ->> 'name' as name
      from jsonb_array_elements(add_steps.steps) with ordinality p (plan, no)),
  known as (
    select p.id, p.name, false as is_done from planned p
    union all
    select s.id, u.name, holdfast.is_success(t.outcome) and s.finished_at is not null
      from unnest(outside, outside_ids) u (name, id)
     cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s
      join holdfast.machine_states t on t.machine = s.machine and t.state = s.state)
  select array_agg(k.id order by k.id, p.id), array_agg(p.id order by k.id, p.id)
    into parents, children
    from planned p, lateral (
           select distinct n.name from jsonb_array_elements_text(coalesce(nullif(p.plan -> 'after',
             'null'), '[]')) n (name)) a
    join known k on k.name = a.name and not k.is_done;
  insert into holdfast.steps (id, run_id, machine, state, kind, queue, tenant, policy, priority, waits,
                              due_at, created_at, input, limits, weight, batch_key)
  select u.id, r.id, add_steps.step_machine, t.state, u.plan ->> 'kind',
         coalesce(u.plan ->> 'queue', k.queue, 'default'), r.tenant,
         coalesce((select p.policy from holdfast.policies p
                    where p.policy = holdfast.policy_name(u.plan ->> 'policy', r.tenant)),
                  u.plan ->> 'policy', k.policy),
         coalesce((u.plan ->> 'priority')::smallint, 0), coalesce(w.waits, 0),
         case when t.phase = 'open' and w.waits is null and r.window_size is null
              then coalesce((u.plan ->> 'due_at')::timestamptz, clock) end,
         clock, coalesce(u.plan -> 'input', '{}'),
         case when u.plan ? 'limits' or d.limits is not null
              then holdfast.limits_for(holdfast.planned_limits(u.plan), d.limits, u.plan -> 'input') end,
         case when u.plan ? 'weight' or d.weight is not null
              then holdfast.weight_for((u.plan ->> 'weight')::numeric, d.weight, d.call_weight, u.plan -> 'input') end,
         case when u.plan ? 'batch_key' or d.batch > 1
              then holdfast.batch_key_for(u.plan ->> 'batch_key', d.batch, d.batch_by, u.plan -> 'input') end
    from (select ids[p.no] as id, p.plan from jsonb_array_elements(add_steps.steps) with ordinality p (plan, no)) u
    join holdfast.runs r on r.id = add_steps.run_id
    join holdfast.machine_states t on t.machine = add_steps.step_machine and t.state = begins
    left join lateral holdfast.kinds_of(r.tenant) k on k.kind = u.plan ->> 'kind'
    left join lateral (
      select o.limits, o.weight, o.call_weight, o.batch, o.batch_by from holdfast.kinds o
       where o.kind = u.plan ->> 'kind' and o.tenant in (r.tenant, '*') order by o.tenant = '*' limit 1) d on true
    left join (select e.child, count(*)::int as waits from unnest(children) e (child)
               group by e.child) w on w.child = u.id;
  insert into holdfast.run_steps
  select add_steps.run_id, ids[p.no], p.plan ->> 'name'
    from jsonb_array_elements(add_steps.steps) with ordinality p (plan, no);
  insert into holdfast.edges select * from unnest(parents, children);
  perform holdfast.check_charges(ids);
  perform holdfast.count_new_steps(add_steps.run_id, ids, clock);
  return ids;
end
$$;
