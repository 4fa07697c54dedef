-- Returns the level of each step of a task: the length of the longest path to it, 0 if it waits for no step.
create or replace function flow.calculate_dependency_levels(task_id uuid)
returns table (step_id bigint, name text, dependency_level int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- the edges of one task, whatever the statistics say
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  return query
  with recursive reached (id, level) as (
    select n.step_id, 0 from holdfast.run_steps n
     where n.run_id = calculate_dependency_levels.task_id
       and exists (select from holdfast.run_list r where r.id = n.run_id)
       and not exists (select from holdfast.edges e where e.next_id = n.step_id)
    union  -- not `all`: each step once per level, not once per path
    select e.next_id, r.level + 1 from reached r join holdfast.edges e on e.step_id = r.id)
  select n.step_id, n.name, max(r.level)
    from reached r
    join holdfast.run_steps n on n.run_id = calculate_dependency_levels.task_id and n.step_id = r.id
   group by n.step_id, n.name
   order by max(r.level), n.step_id;
end
$$;
grant execute on function flow.calculate_dependency_levels to hf_producer, hf_worker, hf_reader, hf_operator;
