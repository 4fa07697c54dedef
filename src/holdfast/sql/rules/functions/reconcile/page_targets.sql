-- Returns the next targets that a step of a pass checks, at most `most`: applied ones, and those whose outcome is
-- unknown, also where the run was stopped before their next try. `standing` says what to do: check (read and compare),
-- superseded (a later run wrote the item) or unknown (read and report). Expected is what the item's newest change in
-- the ledger wrote.
create or replace function rules.page_targets(step_id bigint, lease_id bigint, most int)
returns table (
  target_id bigint, item_id text, currency text, price_before bigint, compare_at_before bigint, expected bigint,
  expected_compare_at bigint, writes_price boolean, writes_compare_at boolean, standing text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set enable_bitmapscan = off
set enable_nestloop = off  -- lists of keys are joined by hash: loops over both would be quadratic
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  part constant rules.pass_parts := rules.held_part(page_targets.step_id, page_targets.lease_id);
  page constant record := rules.next_page(part, page_targets.most);
  superseded constant bigint[] := rules.superseded_targets(part.run_id, page.applied);
begin
  return query
  select v.step_id, v.item_id, v.currency, v.price_before, v.compare_at_before, v.price_after, v.compare_at_after,
         v.writes_price, v.writes_compare_at,
         case when u.id is not null then 'unknown'
              when o.id is not null then 'superseded'  -- guard: superseded
              else 'check' end
    from rules.target_values v
    left join unnest(page.unknown) u (id) on u.id = v.step_id
    left join unnest(superseded) o (id) on o.id = v.step_id
   where v.step_id = any (page.applied || page.unknown)
   order by v.step_id;
end
$$;
grant execute on function rules.page_targets to hf_worker;
