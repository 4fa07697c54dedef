-- Whether a later run of ours explains what a channel shows for a target: the ledger has that run's change by now, or
-- the run is still open and `actual` is the price that it writes. A pass reads the channel before it records what it
-- found, and a run writes there before it settles. Without a change in the ledger, which is kept for two years, no
-- later run is known.
create or replace function rules.is_overtaken(
  pass rules.passes, target rules.target_values, actual bigint, actual_compare_at bigint)
returns boolean
language sql stable
begin atomic
  select coalesce((
    select c.step_id from rules.ledger c
     where c.tenant = pass.tenant and c.channel = pass.channel and c.item_id = target.item_id
     order by c.id desc limit 1), target.step_id) <> target.step_id  -- guard: newest
    or exists (
    select from rules.run_facts o
      join rules.target_values b on b.run_id = o.run_id and b.item_id = target.item_id
     where o.tenant = pass.tenant and o.channel = pass.channel and o.run_id <> pass.run_id
       and o.is_open and rules.is_included(o, b.step_id)  -- guard: open
       and (not b.writes_price or b.price_after = is_overtaken.actual)
       and (not b.writes_compare_at or b.compare_at_after is not distinct from is_overtaken.actual_compare_at));
end;
