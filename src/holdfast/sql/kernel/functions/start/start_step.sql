-- Starts one step of `machine` without a run, served by the handlers of `kind`, and returns its id. The kind's
-- defaults apply to what is null. Reusing `key` with the same machine, kind and input returns the existing step; with
-- others it is refused. While a step with the same `unique_key` is open, that step is returned. `policy` overrides the
-- kind's, `parked_for` keeps the step from being claimed until unpark_steps, and `actor` names the person that the
-- login acts for: the journal then records the creation by that actor. `limits` names up to three limits, and `weight`
-- is what the step takes from their buckets. After `key_for` the key may start another step; null: never. Steps of a
-- kind with a batch share calls by their `batch_key` (null: the field of the input that the kind names).
create or replace function holdfast.start_step(
  machine text, kind text, input jsonb default '{}', queue text default null, key text default null,
  unique_key text default null, due_at timestamptz default null, priority int default 0,
  tenant text default 'default', policy text default null, parked_for text default null, actor text default null,
  limits text[] default null, weight numeric default null, key_for interval default null,
  batch_key text default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return holdfast.make_step(start_step.machine, start_step.kind, start_step.input, start_step.queue, start_step.key,
                            start_step.unique_key, start_step.due_at, start_step.priority, start_step.tenant,
                            start_step.policy, start_step.parked_for, start_step.actor, start_step.limits,
                            start_step.weight, start_step.key_for, start_step.batch_key);
end
$$;
grant execute on function holdfast.start_step to hf_producer, hf_worker, hf_operator;
