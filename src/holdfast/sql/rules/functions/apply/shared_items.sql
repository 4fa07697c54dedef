-- Lists the open runs of the same tenant and channel that have included items in common with a run, and how many. It
-- looks up the items of the smaller run in the larger one. The caller has locked the channel.
create or replace function rules.shared_items(facts rules.run_facts)
returns table (run_id uuid, items bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off  -- by key, whatever the statistics say
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  other rules.run_facts;
  small rules.run_facts;
  large rules.run_facts;
begin
  for other in
    select o.* from rules.run_facts o
     where o.tenant = facts.tenant and o.channel = facts.channel and o.is_open and o.run_id <> facts.run_id
     order by o.run_id
  loop
    small := case when other.included < facts.included then other else facts end;
    large := case when other.included < facts.included then facts else other end;
    select count(*) into shared_items.items
      from rules.target_values a
     cross join lateral (
       select b.step_id from rules.target_values b
        where b.run_id = large.run_id and b.item_id = a.item_id offset 0) b
     where a.run_id = small.run_id and rules.is_included(small, a.step_id) and rules.is_included(large, b.step_id);
    if shared_items.items > 0 then
      shared_items.run_id := other.run_id;
      return next;
    end if;
  end loop;
end
$$;
