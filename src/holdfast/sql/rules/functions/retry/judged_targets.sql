-- Lists the targets that a retry of a run is about, and for each why it is left out, or null. These are its failed
-- targets and, with `with_untried`, the included ones that were never tried; with `only`, the targets named there,
-- whatever they are.
create or replace function rules.judged_targets(
  facts rules.run_facts, only_ids bigint[], without_ids bigint[], classes text[], with_untried boolean)
returns table (target_id bigint, item_id text, skipped text)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- with `lateral` below: by key, whatever the statistics say
set enable_nestloop = off  -- the lists of targets have no index: a nested loop over them is quadratic
set enable_mergejoin = off
set jit = off
as $$
  select t.target_id, t.item_id,
         case when t.state is null then 'it is not a target of this run'
              when t.state <> 'FAILED' and not (judged_targets.with_untried and t.is_untried)
              then format('it is %s%s', t.state, case when t.is_included then '' else ' and was left out' end)
              when t.is_excluded then 'it is excluded by without'
              when t.error ->> 'reason' = 'stale' and t.state = 'FAILED'
              then 'it is stale: the item changed since the preview, so it needs a new one'
              when t.error ->> 'reason' = 'conflict' and t.state = 'FAILED'
              then 'it is in conflict: roll back again, and overwrite it by name if you mean it'
              when t.state = 'FAILED' and rules.error_class(t.error) <> all (judged_targets.classes)
              then format('its error is %s', rules.error_class(t.error)) end
    from (select c.id as target_id, v.item_id, s.state, s.error, i.is_included, x.id is not null as is_excluded,
                 s.state in ('PREVIEW', 'QUEUED') and s.due_at is null and s.parked_due_at is null
                   and i.is_included as is_untried
            from (select n.step_id as id from holdfast.run_steps n
                   where n.run_id = facts.run_id and judged_targets.only_ids is null
                  union
                  select u.id from unnest(judged_targets.only_ids) u (id)) c
            left join lateral (select h.state, h.error, h.due_at, h.parked_due_at from holdfast.steps h
                                where h.id = c.id and h.run_id = facts.run_id offset 0) s on true
            left join lateral (select w.item_id from rules.target_values w
                                where w.step_id = c.id and w.run_id = facts.run_id offset 0) v on true
           cross join lateral (select rules.is_included(facts, c.id) as is_included offset 0) i
            left join (select distinct u.id from unnest(judged_targets.without_ids) u (id)) x on x.id = c.id
           where judged_targets.only_ids is not null or s.state = 'FAILED'
              or (judged_targets.with_untried and s.state in ('PREVIEW', 'QUEUED') and i.is_included)) t
   order by t.target_id;
$$;
