-- The tasks that these steps are of, for whoever tells of them: the steps that were meant, by their numbers, and by what `worker` moved
-- the task itself, in order. Steps that are not of a flow are left out. Sees what its caller may see.
create or replace function flow.touched_tasks(worker text, step_ids bigint[])
returns table (task_id uuid, name text, namespace text, version text, steps jsonb, moves jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- these steps and their tasks, whatever the statistics say
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  return query
  with meant as (
    select s.run_id,
           jsonb_object_agg(s.id, jsonb_build_object(
             'name', n.name, 'attempts', s.failures, 'retry_limit', p.tries, 'failed_at', s.failed_at,
             'next_retry_at', case when s.state = 'error' then coalesce(s.due_at, s.parked_due_at) end)) as steps
      from holdfast.steps s
      join holdfast.run_steps n on n.run_id = s.run_id and n.step_id = s.id
      left join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p on true
     where s.id = any (touched_tasks.step_ids) and s.machine = 'flow.step'
     group by s.run_id)
  select r.id, r.name, coalesce(r.input ->> 'namespace', 'default'), coalesce(r.input ->> 'version', '0.1.0'), m.steps,
         coalesce((select jsonb_agg(jsonb_build_object('id', j.id, 'event', j.event, 'state', j.to_state) order by j.id)
                     from holdfast.journal j
                    where j.run_id = r.id and j.step_id is null and j.actor_kind = 'worker' and j.actor = touched_tasks.worker), '[]')
    from meant m
    join holdfast.runs r on r.id = m.run_id
   order by r.id;
end
$$;
