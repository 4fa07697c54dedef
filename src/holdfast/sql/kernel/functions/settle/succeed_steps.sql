-- Moves steps that are done, each fenced by its lease, and returns those that moved. It reads the primary key's entries
-- of these steps and joins by hash: by nested loop, a plan made on a table of a few rows would read the whole key per
-- batch.
create or replace function holdfast.succeed_steps(
  step_ids bigint[], lease_ids bigint[], results jsonb[], allowed text[], clock timestamptz)
returns table (id bigint, run_id uuid, state text)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on
set enable_nestloop = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan  -- only one plan is left: make it once, not per call
set jit = off
as $$
#variable_conflict use_column
begin
  return query
  with moves as materialized (  -- a few rows, read once: lookups per step took a tenth of a settle
    select m.machine, m.from_state, m.to_state from holdfast.machine_moves m where m.event = 'succeeded')
  update holdfast.steps s
     set state = m.to_state, last_event = 'succeeded', result = o.result, error = null,
         finished_at = succeed_steps.clock, lease_id = null, lease_owner = null, lease_until = null, parked_for = null,
         holds = null, charge = null
    from (select * from unnest(succeed_steps.step_ids, succeed_steps.lease_ids, succeed_steps.results)
                     as u (step_id, lease_id, result)
           order by u.step_id) o,  -- whichever side is hashed, steps are locked in the order of their ids
         moves m
   where s.id = any (succeed_steps.step_ids) and s.id = o.step_id
     and s.lease_id = o.lease_id  -- guard: lease
     and coalesce(pg_column_size(o.result), 0) <= 1048576
     and holdfast.matches_any(succeed_steps.allowed, s.tenant)  -- guard: tenant
     and m.machine = s.machine and m.from_state = s.state
  returning s.id, s.run_id, s.state;
end
$$;
