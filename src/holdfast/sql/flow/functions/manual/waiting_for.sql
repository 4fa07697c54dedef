-- Returns a step and all steps that wait for it, directly or not. `afresh` is false for a step that is only affected
-- because one of its own steps is done again (a mapped step and its item).
create or replace function flow.waiting_for(step_id bigint)
returns table (id bigint, is_afresh boolean)
language sql stable
begin atomic
  with recursive reached (id, is_afresh) as (
    select waiting_for.step_id, true
    union
    select e.next_id, not (starts_with(p.name, c.name || '[') or starts_with(p.name, c.name || '.'))
      from reached r
      join holdfast.edges e on e.step_id = r.id
      join holdfast.steps s on s.id = e.next_id
      join holdfast.run_steps p on p.run_id = s.run_id and p.step_id = r.id
      join holdfast.run_steps c on c.run_id = s.run_id and c.step_id = e.next_id)
  select r.id, bool_or(r.is_afresh) from reached r group by r.id;
end;
