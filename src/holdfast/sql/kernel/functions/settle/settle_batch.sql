-- Settles a batch of claimed steps in one transaction: done steps as three arrays (the hot path), other outcomes as in
-- settle_steps. Each is fenced by its lease; steps that are no longer the caller's are omitted from the result.
create or replace function holdfast.settle_batch(
  step_ids bigint[], lease_ids bigint[], results jsonb[], others jsonb default '[]')
returns setof holdfast.settled_step
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off   -- by primary key, whatever the statistics say: linear in the batch
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan  -- only one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  rest jsonb := settle_batch.others;
  run_ids uuid[];
  ids bigint[];
  states text[];
begin
  perform holdfast.set_actor('worker', holdfast.lease_holder(settle_batch.step_ids, settle_batch.lease_ids, rest));
  if rest <> '[]' and settle_batch.step_ids <> '{}' and exists (select from holdfast.limit_states) then
    perform holdfast.check_outcomes(rest);
    perform holdfast.lock_held(settle_batch.step_ids, rest);
  end if;
  select array_agg(s.id), array_agg(s.state), array_agg(s.run_id) filter (where s.run_id is not null)
    into ids, states, run_ids
    from holdfast.succeed_steps(settle_batch.step_ids, settle_batch.lease_ids, settle_batch.results, allowed, clock) s;
  if run_ids is not null then
    perform holdfast.tally_runs(
      array(select (r.id, 0, -count(*), count(*), 0, 0)::holdfast.run_delta from unnest(run_ids) r (id) group by r.id)
        || holdfast.admit_children(ids, clock), clock, ids);  -- guard: children-first
  end if;
  return query select u.id, 'succeeded', u.state from unnest(ids, states) u (id, state);
  if coalesce(cardinality(ids), 0) < cardinality(settle_batch.step_ids) then
    rest := rest || holdfast.left_unsettled(settle_batch.step_ids, settle_batch.lease_ids, settle_batch.results);
  end if;
  if rest <> '[]' then
    return query select * from holdfast.settle_others(rest, allowed, clock);
  end if;
  perform holdfast.set_actor();
end
$$;
grant execute on function holdfast.settle_batch to hf_worker;
