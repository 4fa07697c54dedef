-- Returns the state of a flow's step or task that the login may act for. Locks a step; a task is locked later, after
-- its steps.
create or replace function flow.state_to_change(id text)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  state text;
begin
  if state_to_change.id ~ '^[0-9]{1,18}$' then
    return (flow.step_to_change(state_to_change.id::bigint)).state;
  end if;
  if state_to_change.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select r.state into state from holdfast.runs r
     where r.id = state_to_change.id::uuid and r.machine = 'flow.task' and holdfast.matches_any(allowed, r.tenant);
  end if;
  if state is null then
    perform holdfast.refuse_pruned(state_to_change.id);
    perform holdfast.refuse('RN004', format('there is no step or task %s of a flow', state_to_change.id),
                            'a step is a number, a task a UUID; flow.steps and flow.tasks list them',
                            state_to_change.id);
  end if;
  return state;
end
$$;
