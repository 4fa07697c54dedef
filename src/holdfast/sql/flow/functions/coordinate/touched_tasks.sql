-- Lists the tasks of these steps for the events about them: the steps by their ids, and the moves of the task itself
-- that `worker` made, in order. Omits steps that are not of a flow, and those of tenants that the login may not act
-- for. Reads only these steps and the rows of their tasks.
create or replace function flow.touched_tasks(worker text, step_ids bigint[])
returns table (task_id uuid, name text, namespace text, version text, steps jsonb, moves jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- these steps and their tasks, whatever the statistics say
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
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
     where s.id = any (touched_tasks.step_ids) and s.machine = 'flow.step' and holdfast.matches_any(allowed, s.tenant)
     group by s.run_id)
  select r.id, r.name, coalesce(r.input ->> 'namespace', 'default'), coalesce(r.input ->> 'version', '0.1.0'), m.steps,
         flow.moves_by(r, touched_tasks.worker)
    from meant m
    join holdfast.runs r on r.id = m.run_id
   order by r.id;
end
$$;
grant execute on function flow.touched_tasks to hf_producer, hf_worker, hf_reader, hf_operator;
