-- Stages the inverse of what is APPLIED in a run: each price goes from what the run wrote to what was there before, as
-- far as the rule wrote it. A forced target goes from what the channel was seen to show. Returns what the plan says
-- besides: the run that it undoes, how much of that was applied and rolled back by now, and the forced items.
create or replace function rules.stage_inverse(
  facts rules.run_facts, only_ids bigint[], without_ids bigint[], force jsonb)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  forced constant bigint[] := rules.check_forced(facts, stage_inverse.force);
  stray bigint[];
begin
  if stage_inverse.only_ids is not null and stage_inverse.without_ids is not null then
    perform holdfast.refuse('RN005', 'only and without are both set', 'leave one out', 'only');
  end if;
  stray := array(
    select u.id from unnest(stage_inverse.only_ids || stage_inverse.without_ids || forced) u (id)
     where not exists (select from holdfast.steps s
                        where s.id = u.id and s.run_id = facts.run_id and s.state = 'APPLIED')
     order by 1 limit 5);
  if stray <> '{}' then
    perform holdfast.refuse('RN005', format('targets %s are not applied in run %s', array_to_string(stray, ', '),
                                            facts.run_id),
                            format('list them: holdfast rules targets %s --status APPLIED', facts.run_id), 'only');
  end if;
  perform rules.stage_targets(facts.channel, facts.tenant);
  insert into pg_temp.staged_steps (item_id, currency, price_before, price_after, compare_at_before, compare_at_after,
                                    writes_price, writes_compare_at, batch_key)
  select v.item_id, v.currency,
         case when v.writes_price and s.id = any (forced) then w.unit_amount else v.price_after end, v.price_before,
         case when v.writes_compare_at and s.id = any (forced) then w.compare_at else v.compare_at_after end,
         v.compare_at_before, v.writes_price, v.writes_compare_at, s.batch_key
    from holdfast.run_steps n
    join holdfast.steps s on s.id = n.step_id and s.state = 'APPLIED'
    join rules.target_values v on v.step_id = n.step_id
    left join jsonb_to_recordset(stage_inverse.force) w (target_id bigint, unit_amount bigint, compare_at bigint)
      on w.target_id = s.id
   where n.run_id = facts.run_id
     and (stage_inverse.only_ids is null or s.id = any (stage_inverse.only_ids))
     and (stage_inverse.without_ids is null or s.id <> all (stage_inverse.without_ids))
   order by n.step_id;
  return jsonb_build_object(
    'undoes', facts.run_id, 'applied', (select r.succeeded from holdfast.runs r where r.id = facts.run_id),
    'rolledBack', facts.rolled_back,
    'forced', coalesce((select jsonb_agg(v.item_id order by v.item_id) from rules.target_values v
                         where v.step_id = any (forced)), '[]'));
end
$$;
