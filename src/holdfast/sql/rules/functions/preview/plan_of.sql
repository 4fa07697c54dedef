-- Returns the plan of a run whose targets are stored: the rule and its version, counts, the sums before and after in
-- each currency, and the five largest moves in each direction, by their share of the price before.
create or replace function rules.plan_of(
  run_id uuid, rule rules.rule_versions, channel text, unchanged bigint, refused bigint)
returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by run: statistics may say that all targets are of one
as $$
  with moves as materialized (
    select v.item_id, v.currency, v.price_before, v.price_after,
           (v.price_after - v.price_before)::numeric / nullif(abs(v.price_before), 0) as share
      from rules.target_values v where v.run_id = plan_of.run_id),
  largest as (
    (select 'down' as direction, row_number() over (order by m.share, m.item_id) as no, m.*
       from moves m where m.share < 0 order by m.share, m.item_id limit 5)
    union all
    (select 'up', row_number() over (order by m.share desc, m.item_id), m.*
       from moves m where m.share > 0 order by m.share desc, m.item_id limit 5))
  select jsonb_build_object(
    'rule', rule.definition, 'version', rule.version, 'channel', plan_of.channel,
    'targets', (select count(*) from moves), 'unchanged', plan_of.unchanged, 'refused', plan_of.refused,
    'sums', coalesce((
      select jsonb_object_agg(s.currency, jsonb_build_object(
               'targets', s.targets, 'before', s.before, 'after', s.after))
        from (select m.currency, count(*) as targets, sum(m.price_before) as before, sum(m.price_after) as after
                from moves m group by m.currency) s), '{}'),
    'largest', (
      select jsonb_build_object(
               'down', coalesce(jsonb_agg(l.move order by l.no) filter (where l.direction = 'down'), '[]'),
               'up', coalesce(jsonb_agg(l.move order by l.no) filter (where l.direction = 'up'), '[]'))
        from (select g.direction, g.no, jsonb_build_object(
                       'item', g.item_id, 'currency', g.currency, 'before', g.price_before, 'after', g.price_after,
                       'percent', round(g.share * 100, 1)) as move
                from largest g) l));
$$;
