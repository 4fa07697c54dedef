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
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  part constant rules.pass_parts := rules.held_part(page_targets.step_id, page_targets.lease_id);
  facts constant rules.run_facts := (select f from rules.run_facts f where f.run_id = part.run_id);
begin
  return query
  select v.step_id, v.item_id, v.currency, v.price_before, v.compare_at_before, v.price_after, v.compare_at_after,
         v.writes_price, v.writes_compare_at,
         case when t.state <> 'APPLIED' then 'unknown'
              when l.step_id <> v.step_id then 'superseded'  -- guard: superseded
              else 'check' end
    from (select s.id, s.state
            from holdfast.run_steps n
           cross join lateral (select h.id, h.state, h.error from holdfast.steps h where h.id = n.step_id offset 0) s
           where n.run_id = part.run_id and n.step_id > part.after and n.step_id <= part.last
             and (s.state = 'APPLIED'
                  or (s.state in ('FAILED', 'QUEUED') and rules.is_unknown(s.error)))  -- guard: unknown
           order by n.step_id
           limit page_targets.most) t
   cross join lateral (select w.* from rules.target_values w where w.step_id = t.id offset 0) v
    left join lateral (
      select c.step_id from rules.ledger c
       where c.tenant = facts.tenant and c.channel = facts.channel and c.item_id = v.item_id
       order by c.id desc limit 1) l on true
   order by v.step_id;
end
$$;
grant execute on function rules.page_targets to hf_worker;
