-- Stores which targets of a run take part in its apply, and returns the facts with their number: `only_ids`, or all but
-- `without_ids`. Refuses both at once, and ids of other runs. The caller has locked the channel; with
-- `leave_out_shared` items of other open runs are left out too.
create or replace function rules.choose_targets(
  facts rules.run_facts, only_ids bigint[], without_ids bigint[], leave_out_shared boolean)
returns rules.run_facts
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  named constant bigint[] := coalesce(choose_targets.only_ids, choose_targets.without_ids, '{}');
begin
  perform rules.check_choice(facts, choose_targets.only_ids, choose_targets.without_ids);
  facts.includes_others := choose_targets.only_ids is null;
  insert into rules.exceptions select distinct facts.run_id, u.id from unnest(named) u (id);
  if choose_targets.leave_out_shared then
    with shared as (
      select distinct a.step_id
        from rules.run_facts o
        join rules.target_values b on b.run_id = o.run_id and rules.is_included(o, b.step_id)
        join rules.target_values a on a.run_id = facts.run_id and a.item_id = b.item_id
       where o.tenant = facts.tenant and o.channel = facts.channel and o.is_open and o.run_id <> facts.run_id
         and rules.is_included(facts, a.step_id)),
    dropped as (
      delete from rules.exceptions e using shared s
       where e.run_id = facts.run_id and e.step_id = s.step_id and not facts.includes_others)
    insert into rules.exceptions select facts.run_id, s.step_id from shared s where facts.includes_others;
  end if;
  facts.included := (select case when facts.includes_others then p.targets else 0 end from rules.plans p
                      where p.run_id = facts.run_id)
    + case when facts.includes_others then -1 else 1 end
    * (select count(*)::int from rules.exceptions e where e.run_id = facts.run_id);
  update rules.run_facts f set includes_others = facts.includes_others, included = facts.included
   where f.run_id = facts.run_id;
  return facts;
end
$$;
