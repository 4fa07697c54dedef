-- A build for bench/sections/cost.py, never a switch of the product: every move is journaled and none is checked.
create or replace function holdfast.journal_step_moves()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on
set enable_seqscan = on
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := current_setting('holdfast.actor', true);
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
begin
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor,
                                step_id, run_id, attempt, lease_id, reason, error)
  select clock, n.tenant, n.machine, o.state, n.last_event, n.state, announced, coalesce(o.lease_owner, actor),
         n.id, n.run_id, n.attempt, coalesce(o.lease_id, n.lease_id), reason,
         case when n.error is distinct from o.error then n.error end
    from o
    join n on n.id = o.id
   where o.state <> n.state or o.lease_id is distinct from n.lease_id;
  return null;
end
$$;
