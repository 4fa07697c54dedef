-- Locks the step of a run that the caller holds under a lease. Refuses one that it does not hold.
create or replace function ops.held_run(step_id bigint, lease_id bigint)
returns holdfast.steps
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
begin
  select s.* into step from holdfast.steps s
   where s.id = held_run.step_id
     and s.lease_id = held_run.lease_id  -- guard: lease
     for update;
  if step.id is null
     or not holdfast.matches_any(allowed, step.tenant)  -- guard: tenant
  then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', held_run.step_id, held_run.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  return step;
end
$$;
