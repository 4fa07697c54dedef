-- Decides what follows after a failed execution of a run that the caller holds: returns how long its worker has to wait
-- before it executes the run again, and writes the event that says so; null if `executions` uses up the policy. The
-- policy is `ops.in_place:<kind>` where a handler defined one, else `ops.in_place`.
create or replace function ops.retry_in_place(step_id bigint, lease_id bigint, executions int, error text)
returns interval
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  step constant holdfast.steps := ops.held_run(retry_in_place.step_id, retry_in_place.lease_id);
  law holdfast.policies;
  own text;
  delay interval;
  seconds numeric;
begin
  perform holdfast.check_note('warn', retry_in_place.error, '{}', null);
  own := regexp_replace(step.kind, '^ops:', 'ops.in_place:');
  select p.* into strict law
    from unnest(array[holdfast.policy_name(own, step.tenant), own,
                      holdfast.policy_name('ops.in_place', step.tenant), 'ops.in_place'])
           with ordinality n (name, place)
    join holdfast.policies p on p.policy = n.name
   order by n.place
   limit 1;
  if coalesce(retry_in_place.executions, 1) >= law.tries or not law.retryable then  -- guard: budget
    return null;
  end if;
  delay := holdfast.backoff(law.policy, greatest(retry_in_place.executions, 1));
  seconds := trim_scale(extract(epoch from delay));
  perform holdfast.write_note(
    step, 'warn',
    format('Retry %s/%s in %s seconds: %s', retry_in_place.executions, law.tries, seconds,
           retry_in_place.error),
    jsonb_build_object('execution', retry_in_place.executions, 'of', law.tries,
                       'retry_in_seconds', seconds),
    format('retry:%s:%s', step.lease_id, retry_in_place.executions), clock);
  return delay;
end
$$;
grant execute on function ops.retry_in_place to hf_worker;
