-- Turns the rows of the staging tables into tasks, or into steps of `run_id` with their edges: all of them or none.
-- Returns how many steps were added.
create or replace function holdfast.take_staged(
  machine text default 'work.task', run_id uuid default null, tenant text default 'default')
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  begins holdfast.machine_states;
  taken bigint;
  live bigint;
  queues text[];
  priorities int[];
begin
  perform holdfast.check_staging();
  perform holdfast.check_tenant(take_staged.tenant);
  perform holdfast.check_staged();
  -- Wait for parents that are being settled: that settle would not see the new edge. Steps are locked before runs.
  perform from holdfast.steps s
    where s.id = any (array(select e.step_id from pg_temp.staged_edges e)) order by s.id for share;
  if take_staged.run_id is not null then
    perform holdfast.check_open_run(take_staged.run_id, take_staged.tenant);
  end if;
  select t.* into begins from holdfast.machine_states t
   where t.machine = take_staged.machine and t.state = holdfast.initial_state(take_staged.machine, 'step');
  with waiting as (
    select e.next_id, count(distinct e.step_id)::int as waits
      from pg_temp.staged_edges e
      left join holdfast.steps p on p.id = e.step_id and p.finished_at is not null
      left join holdfast.machine_states t on t.machine = p.machine and t.state = p.state
     where holdfast.is_success(t.outcome) is not true
     group by e.next_id),
  started as (
    insert into holdfast.steps (id, run_id, machine, state, kind, queue, tenant, policy, unique_key,
                                priority, waits, due_at,
                                created_at, input, limits, weight)
    select coalesce(g.id, g.own_id), take_staged.run_id, begins.machine, begins.state, g.kind,
      coalesce(g.queue, k.queue, 'default'),
           take_staged.tenant,
           coalesce(case when g.policy is not null then (
                      select p.policy from holdfast.policies p
                       where p.policy = holdfast.policy_name(g.policy, take_staged.tenant)) end, g.policy, k.policy),
           g.unique_key, g.priority, coalesce(w.waits, 0),
           case when begins.phase = 'open' and w.waits is null then coalesce(g.due_at, clock) end, clock, g.input,
           case when g.limits is not null or d.limits is not null
                then holdfast.limits_for(g.limits, d.limits, g.input) end,
           case when g.weight is not null or d.weight is not null
                then holdfast.weight_for(g.weight, d.weight, d.call_weight, g.input) end
      from pg_temp.staged_steps g
      left join holdfast.kinds_of(take_staged.tenant) k on k.kind = g.kind
      left join (select distinct on (o.kind) o.kind, o.limits, o.weight, o.call_weight from holdfast.kinds o
                  where o.tenant in (take_staged.tenant, '*') order by o.kind, o.tenant = '*') d on d.kind = g.kind
      left join waiting w on w.next_id = g.id
    returning steps.due_at)
  select count(*), count(s.due_at) into taken, live from started s;
  if exists (select from holdfast.limits) then
    perform holdfast.check_charges(array(select coalesce(g.id, g.own_id) from pg_temp.staged_steps g));
  end if;
  if taken = 0 and exists (select from holdfast.runs r where r.id = take_staged.run_id and r.total = 0) then
    perform holdfast.refuse('RN005', format('run %s has no steps and none is staged', take_staged.run_id),
                            'copy its steps into pg_temp.staged_steps first');
  end if;
  if take_staged.run_id is not null then
    insert into holdfast.run_steps select take_staged.run_id, coalesce(g.id, g.own_id), g.name
      from pg_temp.staged_steps g;
  end if;
  insert into holdfast.edges select distinct e.step_id, e.next_id from pg_temp.staged_edges e order by 1, 2;
  select array_agg(q.queue), array_agg(q.priority) into queues, priorities
    from (select coalesce(g.queue, k.queue, 'default') as queue, max(g.priority)::int as priority
            from pg_temp.staged_steps g left
              join holdfast.kinds_of(take_staged.tenant) k on k.kind = g.kind group by 1) q;
  perform holdfast.remember_queues(queues, priorities);
  if take_staged.run_id is not null and taken > 0 then
    perform holdfast.set_actor('api', session_user::text);
    perform holdfast.tally_runs(array[(take_staged.run_id, taken, live, 0, 0, 0)::holdfast.run_delta], clock);
    perform holdfast.set_actor();
  end if;
  drop table pg_temp.staged_steps, pg_temp.staged_edges;
  perform holdfast.wake(queues);
  return taken;
end
$$;
grant execute on function holdfast.take_staged to hf_producer, hf_worker, hf_operator;
