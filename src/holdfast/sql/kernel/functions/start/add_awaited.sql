-- Adds planned steps to the run of a step that the caller holds, and makes that step wait for the ones named in
-- `awaited` (null: for all of them). Call it in the transaction that settles the step as continued: the step is due
-- again when they are done. Returns how many steps it waits for.
create or replace function holdfast.add_awaited(step_id bigint, lease_id bigint, steps jsonb,
                                                awaited text[] default null)
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
  ids bigint[];
begin
  select s.* into step from holdfast.steps s where s.id = add_awaited.step_id
    and s.lease_id = add_awaited.lease_id for update;
  if step.id is null or step.run_id is null or not holdfast.matches_any(allowed, step.tenant) then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s',
                                            add_awaited.step_id, add_awaited.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  perform holdfast.check_open_run(step.run_id, step.tenant);
  perform holdfast.set_actor('worker', step.lease_owner);
  ids := holdfast.add_steps(step.run_id, step.machine, add_awaited.steps);
  if add_awaited.awaited is not null then
    ids := array(select n.step_id from holdfast.run_steps n
                  where n.run_id = step.run_id and n.step_id = any (ids) and n.name = any (add_awaited.awaited));
  end if;
  update holdfast.steps s
     set waits = s.waits + cardinality(ids)  -- guard: waits
   where s.id = step.id;
  insert into holdfast.edges select u.id, step.id from unnest(ids) u (id);
  perform holdfast.set_actor();
  return cardinality(ids);
end
$$;
grant execute on function holdfast.add_awaited to hf_worker;
