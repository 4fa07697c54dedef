-- Finds a step of one of the machines that the caller holds under a lease, and locks it. Refuses a lost lease.
create or replace function ingest.held_step(step_id bigint, lease_id bigint, machines text[])
returns holdfast.steps
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  step holdfast.steps;
begin
  select s.* into step from holdfast.steps s
   where s.id = held_step.step_id and s.machine = any (held_step.machines)
     and s.lease_id = held_step.lease_id  -- guard: lease
     and holdfast.matches_any(holdfast.allowed_tenants(), s.tenant)
     for update;
  if step.id is null then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', held_step.step_id,
                                            held_step.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  return step;
end
$$;
