-- Returns the result that the step of that name gives to its children. A mapped step gives the list of its items'
-- results, unless a person set its result.
create or replace function flow.result_in_run(run_id uuid, name text)
returns jsonb
language sql stable
begin atomic
  select case when s.cursor ? 'mapped' and coalesce(s.result, s.cursor) = s.cursor then (
                select coalesce(jsonb_agg(coalesce(i.result, 'null') order by i.id), '[]')  -- guard: order
                  from holdfast.edges e
                  join holdfast.steps i on i.id = e.step_id
                  join holdfast.run_steps m on m.run_id = i.run_id and m.step_id = i.id
                 where e.next_id = s.id and starts_with(m.name, n.name || '['))
              else coalesce(s.result, 'null') end
    from holdfast.run_steps n
    join holdfast.steps s on s.id = n.step_id
   where n.run_id = result_in_run.run_id and n.name = result_in_run.name
     and coalesce(s.tenant = any ((select holdfast.allowed_tenants())::text[]), true);
end;
grant execute on function flow.result_in_run to hf_producer, hf_worker, hf_reader, hf_operator;
