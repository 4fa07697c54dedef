-- Returns a flow's step that the login may act for, locked.
create or replace function flow.step_to_change(step_id bigint)
returns holdfast.steps
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
begin
  select s.* into step from holdfast.steps s
   where s.id = step_to_change.step_id and s.machine = 'flow.step'
     and holdfast.matches_any(allowed, s.tenant) for update;
  if step.id is null then
    perform holdfast.refuse_pruned(step_to_change.step_id::text);
    perform holdfast.refuse('RN004', format('there is no step %s of a flow''s task', step_to_change.step_id),
                            'flow.steps lists them', step_to_change.step_id::text);
  end if;
  return step;
end
$$;
