-- Returns a task that a worker holds under its lease. Refuses one whose lease was lost, or that belongs to another
-- tenant than the login's.
create or replace function rules.held_task(step_id bigint, lease_id bigint)
returns holdfast.steps
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  task holdfast.steps;
begin
  select s.* into task from holdfast.steps s
   where s.id = held_task.step_id and s.lease_id = held_task.lease_id  -- guard: lease
     and s.machine = 'work.task' and holdfast.matches_any(holdfast.allowed_tenants(), s.tenant);
  if task.id is null then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', held_task.step_id,
                                            held_task.lease_id), 'leave it to the worker that holds it');
  end if;
  return task;
end
$$;
