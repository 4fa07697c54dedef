-- Finds a run of the login's tenants by its id, or by the number of its step, and locks its step: everything that
-- happens to one run happens one after the other. Refuses an unknown or a pruned run.
create or replace function ops.lock_run(run_id text, out step holdfast.steps, out facts ops.run_facts)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  found_id bigint := (select f.step_id from ops.run_facts f where f.run_id = lock_run.run_id);
begin
  if found_id is null and lock_run.run_id ~ '^[0-9]{1,18}$' then
    found_id := (select f.step_id from ops.run_facts f where f.step_id = lock_run.run_id::bigint);
  end if;
  select s.* into step from holdfast.steps s
   where s.id = found_id and holdfast.matches_any(allowed, s.tenant)  -- guard: tenant
     for update;  -- guard: lock
  if step.id is null then
    perform ops.refuse_missing(lock_run.run_id);
  end if;
  select f.* into facts from ops.run_facts f where f.step_id = step.id;  -- after the lock: as it is now
end
$$;
