-- Cancels a run that was claimed more than five minutes ago and has no event, with this metadata. Tells whether it was.
create or replace function ops.cancel_if_stale(p_run_id text, p_metadata jsonb)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  given constant jsonb := ops.checked_metadata(p_metadata);
  held record;
  step holdfast.steps;
begin
  select * into held from ops.lock_run(p_run_id);
  step := held.step;
  if step.state <> 'claimed' or step.claimed_at >= clock - interval '5 minutes' then  -- guard: stale
    return false;
  end if;
  perform holdfast.set_actor('system', session_user::text, left(given ->> 'reason', 1000));
  perform from holdfast.move_steps(array[(
    step.id, step.lease_id, 'expired', null, null, jsonb_build_object(
      'type', 'LeaseExpired', 'message', ops.stale_reason(step.state, step.claimed_at, clock)), null
    )::holdfast.step_move], clock);
  perform holdfast.set_actor();
  update ops.run_facts f set metadata = f.metadata || given where f.step_id = step.id;
  return true;
end
$$;
grant execute on function ops.cancel_if_stale to hf_worker, hf_operator;
