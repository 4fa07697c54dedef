-- Returns the shape of a run as a plan, without the steps that steps in `afresh` had planned: these will plan them
-- again.
create or replace function flow.plan_of_run(run_id uuid, afresh bigint[])
returns jsonb
language sql stable
begin atomic
  with kept as (
    select n.step_id, n.name
      from holdfast.run_steps n
     where n.run_id = plan_of_run.run_id
       and not exists (select from holdfast.run_steps f
                        where f.run_id = n.run_id
                          and f.step_id = any (plan_of_run.afresh)  -- guard: afresh
                          and (starts_with(n.name, f.name || '[') or starts_with(n.name, f.name || '.'))))
  select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
           'name', k.name, 'kind', s.kind, 'queue', s.queue, 'priority', s.priority, 'policy', s.policy,
           'limits', s.limits, 'weight', s.weight,
           'after', (select jsonb_agg(p.name order by p.step_id)
                       from holdfast.edges e join kept p on p.step_id = e.step_id where e.next_id = s.id)))
           || jsonb_build_object('input', s.input) order by s.id)
    from kept k join holdfast.steps s on s.id = k.step_id;
end;
