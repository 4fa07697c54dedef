-- Cancels a run that the caller holds if it was claimed after its time in the queue was over. Returns whether it was.
create or replace function ops.expire_claimed(step_id bigint, lease_id bigint)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  step constant holdfast.steps := ops.held_run(expire_claimed.step_id, expire_claimed.lease_id);
begin
  if not exists (select from ops.run_facts f
                  where f.step_id = step.id and f.status = 'claimed' and f.expires_at <= step.claimed_at) then
    return false;
  end if;
  perform holdfast.set_actor('system', 'system', 'Run expired in the queue');
  perform from holdfast.move_steps(array[
    (step.id, step.lease_id, 'cancelled', null, null, null, null)::holdfast.step_move]);
  perform holdfast.set_actor();
  return true;
end
$$;
grant execute on function ops.expire_claimed to hf_worker;
