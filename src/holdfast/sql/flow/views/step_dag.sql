-- The edges of a task. flow.calculate_dependency_levels returns the level of each step.
create or replace view flow.step_dag with (security_invoker = true) as
select n.step_id, n.run_id as task_id, n.name, p.ids as parent_step_ids, p.names as parent_names,
  c.ids as child_step_ids,
       c.names as child_names, p.ids = '{}' as is_root_step, c.ids = '{}' as is_leaf_step
  from holdfast.run_steps n
  join holdfast.runs r on r.id = n.run_id and r.machine = 'flow.task'
   and coalesce(r.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
 cross join lateral (
   select coalesce(array_agg(e.step_id order by e.step_id), '{}') as ids,
     coalesce(array_agg(m.name order by e.step_id), '{}') as names
     from holdfast.edges e left join holdfast.run_steps m on m.run_id = n.run_id and m.step_id = e.step_id
    where e.next_id = n.step_id) p
 cross join lateral (
   select coalesce(array_agg(e.next_id order by e.next_id), '{}') as ids,
     coalesce(array_agg(m.name order by e.next_id), '{}') as names
     from holdfast.edges e left join holdfast.run_steps m on m.run_id = n.run_id and m.step_id = e.next_id
    where e.step_id = n.step_id) c;
grant select on flow.step_dag to hf_producer, hf_worker, hf_reader, hf_operator;
