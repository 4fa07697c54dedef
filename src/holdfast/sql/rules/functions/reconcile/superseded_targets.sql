-- Returns those applied targets of a run whose items a later run wrote: the item's newest change in the ledger is not
-- the target's own. One scan counts the changes of all items since the first of the targets' own. If these are only
-- their own, none is superseded. Otherwise the newest change of each item is looked up. page_targets sets how its
-- statements are planned, apart from what it sets itself.
create or replace function rules.superseded_targets(run_id uuid, ids bigint[])
returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set seq_page_cost = 0  -- the plan that reads the fewest rows is the cheapest: by item, not by the numbers of changes
set random_page_cost = 0
set cpu_index_tuple_cost = 0
set cpu_operator_cost = 0
as $$
declare
  facts constant rules.run_facts := (select f from rules.run_facts f where f.run_id = superseded_targets.run_id);
  own constant bigint[] := array(select c.id from rules.ledger c where c.step_id = any (superseded_targets.ids));
  items constant text[] := array(select v.item_id from rules.target_values v
                                  where v.step_id = any (superseded_targets.ids));
  first constant bigint := case when cardinality(own) = cardinality(superseded_targets.ids)
                                then (select min(o.id) from unnest(own) o (id)) else 0 end;  -- guard: missing
  most constant int := cardinality(own) + 1;
  count constant int := case when current_setting('server_version_num')::int >= 170000 then (
      select count(*)
        from (select from rules.ledger c
               where c.tenant = facts.tenant and c.channel = facts.channel and c.item_id = any (items) and c.id >= first
               limit most) c)
    else (  -- older servers may read the whole channel, and use the list of items as a filter only
      select count(*)
        from (select from unnest(items) i (item_id)
               cross join lateral (
                 select from rules.ledger c
                  where c.tenant = facts.tenant and c.channel = facts.channel and c.item_id = i.item_id
                    and c.id >= first
                  limit most) c
               limit most) c) end;
begin
  if count = cardinality(own) then
    return '{}';
  end if;
  return array(
    select v.step_id
      from (select w.step_id, w.item_id from rules.target_values w
             where w.step_id = any (superseded_targets.ids) offset 0) v
     cross join lateral (
       select c.step_id from rules.ledger c
        where c.tenant = facts.tenant and c.channel = facts.channel and c.item_id = v.item_id
        order by c.id desc limit 1) l
     where l.step_id <> v.step_id);  -- guard: newest
end
$$;
