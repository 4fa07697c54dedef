-- Enters targets of a run that were applied into the ledger. It reads the keys' entries of these targets and joins by
-- hash: lookups per target took longer than the insert.
create or replace function rules.enter_changes(facts rules.run_facts, step_ids bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
begin
  insert into rules.ledger (at, tenant, channel, item_id, currency, price_before, price_after, compare_at_before,
                            compare_at_after, source, effect, rule_id, rule_version, run_id, step_id)
  select enter_changes.clock, facts.tenant, facts.channel, v.item_id, v.currency, v.price_before, v.price_after,
         v.compare_at_before, v.compare_at_after, facts.source,
         case when s.result ->> 'effect' = 'found' then 'found' else 'written' end,
         facts.rule_id, facts.rule_version, facts.run_id, s.id
    from holdfast.steps s
    join rules.target_values v on v.step_id = s.id
   where s.id = any (enter_changes.step_ids) and v.step_id = any (enter_changes.step_ids);
end
$$;
