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
  free bigint;
  has_window boolean;
  queues text[];
  priorities int[];
  sort record;  -- of the first step: others of the same sort get the same limits, weight and key
begin
  perform holdfast.check_staging();
  perform holdfast.check_tenant(take_staged.tenant);
  perform holdfast.check_staged();
  has_window := coalesce((select r.window_size is not null or r.queued_at is null
                            from holdfast.runs r where r.id = take_staged.run_id), false);
  if has_window then
    perform pg_advisory_xact_lock(holdfast.run_lock(take_staged.run_id));  -- before steps, as lots do
  end if;
  -- Wait for parents that are being settled: that settle would not see the new edge. Steps are locked before runs.
  perform from holdfast.steps s
    where s.id = any (array(select e.step_id from pg_temp.staged_edges e)) order by s.id for share;
  if take_staged.run_id is not null then
    perform holdfast.check_open_run(take_staged.run_id, take_staged.tenant);
  end if;
  if has_window and exists (select from pg_temp.staged_steps g where g.due_at is not null) then
    perform holdfast.refuse('RN005', format('steps of run %s cannot have a due time: its window admits them',
                                            take_staged.run_id), 'leave due_at out', 'due_at');
  end if;
  select t.* into begins from holdfast.machine_states t
   where t.machine = take_staged.machine and t.state = holdfast.initial_state(take_staged.machine, 'step');
  select g.kind, g.limits, g.weight, g.batch_key, o.own_limits, o.own_weight, o.own_key into sort
    from (select f.* from pg_temp.staged_steps f limit 1) g
   cross join lateral holdfast.own_sort(g.kind, g.limits, g.weight, g.batch_key, take_staged.tenant) o;
  with waiting as (
    select e.next_id, count(distinct e.step_id)::int as waits
      from pg_temp.staged_edges e
      left join holdfast.steps p on p.id = e.step_id and p.finished_at is not null
      left join holdfast.machine_states t on t.machine = p.machine and t.state = p.state
     where holdfast.is_success(t.outcome) is not true
     group by e.next_id)
  insert into holdfast.steps (id, run_id, machine, state, kind, queue, tenant, policy, unique_key,
                              priority, waits, due_at,
                              created_at, input, limits, weight, batch_key)
  select coalesce(g.id, g.own_id), take_staged.run_id, begins.machine, begins.state, g.kind,
         coalesce(g.queue, k.queue, 'default'),
         take_staged.tenant,
         coalesce(case when g.policy is not null then (
                    select p.policy from holdfast.policies p
                     where p.policy = holdfast.policy_name(g.policy, take_staged.tenant)) end, g.policy, k.policy),
         g.unique_key, g.priority, coalesce(w.waits, 0),
         case when begins.phase = 'open' and w.waits is null and not has_window then coalesce(g.due_at, clock) end,
         clock, g.input,
         case when g.kind = sort.kind and g.limits is not distinct from sort.limits then sort.own_limits
              when g.limits is not null or d.limits is not null
              then holdfast.limits_for(g.limits, d.limits, g.input) end,
         case when g.kind = sort.kind and g.weight is not distinct from sort.weight then sort.own_weight
              when g.weight is not null or d.weight is not null
              then holdfast.weight_for(g.weight, d.weight, d.call_weight, g.input) end,
         case when g.kind = sort.kind and g.batch_key is not distinct from sort.batch_key then sort.own_key
              when g.batch_key is not null or d.batch > 1
              then holdfast.batch_key_for(g.batch_key, d.batch, d.batch_by, g.input) end
    from pg_temp.staged_steps g
    left join holdfast.kinds_of(take_staged.tenant) k on k.kind = g.kind
    left join (select distinct on (o.kind) o.kind, o.limits, o.weight, o.call_weight, o.batch, o.batch_by
                 from holdfast.kinds o
                where o.tenant in (take_staged.tenant, '*') order by o.kind, o.tenant = '*') d on d.kind = g.kind
    left join waiting w on w.next_id = g.id;
  get diagnostics taken = row_count;  -- not `returning`: it would store all rows once more
  if exists (select from pg_temp.staged_edges) then
    select count(s.due_at), count(*) filter (where s.waits = 0) into live, free
      from pg_temp.staged_steps g
      join holdfast.steps s on s.id = coalesce(g.id, g.own_id);
  else
    free := taken;
    live := case when begins.phase = 'open' and not has_window then taken else 0 end;
  end if;
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
    if has_window then
      perform holdfast.add_to_window(take_staged.run_id, free::int, (taken - free)::int,
                                     (select min(coalesce(g.id, g.own_id)) from pg_temp.staged_steps g));
    end if;
    perform holdfast.tally_runs(
      array[(take_staged.run_id, taken, live, 0, 0, 0)::holdfast.run_delta], clock,
      -- read only if the run is paused or stopped
      case when live > 0 and exists (select from holdfast.runs r where r.id = take_staged.run_id and r.halt is not null)
           then array(select coalesce(g.id, g.own_id) from pg_temp.staged_steps g) else '{}' end);
    if has_window then
      perform holdfast.admit_first_lot(take_staged.run_id, clock);
    end if;
    perform holdfast.set_actor();
  end if;
  drop table pg_temp.staged_steps, pg_temp.staged_edges;
  perform holdfast.wake(queues);
  return taken;
end
$$;
grant execute on function holdfast.take_staged to hf_producer, hf_worker, hf_operator;
