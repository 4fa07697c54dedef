-- Returns state and result of a task's steps (`names` of them, or all), in the order of the plan. A mapped step has the
-- list of its items' results. The outcome is null while a step is not over. Shows what its caller may see.
create or replace function flow.step_outcomes(task_id uuid, names text[] default null)
returns table (step_id bigint, name text, state text, outcome text, result jsonb, error jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- the steps of one run, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select s.id, n.name, s.state, case when s.finished_at is not null then t.outcome end,
         case when s.finished_at is not null then flow.result_in_run(n.run_id, n.name) end, s.error
    from holdfast.runs r  -- a large run is pruned before its steps
    join holdfast.run_steps n on n.run_id = r.id
    join holdfast.steps s on s.id = n.step_id
    join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
   where r.id = step_outcomes.task_id and holdfast.matches_any(step_outcomes.names, n.name)
     and holdfast.matches_any(allowed, s.tenant)
   order by s.id;
end
$$;
grant execute on function flow.step_outcomes to hf_producer, hf_worker, hf_reader, hf_operator;
