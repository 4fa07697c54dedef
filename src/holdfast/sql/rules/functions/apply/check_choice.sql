-- Refuses a choice of targets that is not one: `only` and `without` at once, and ids of other runs.
create or replace function rules.check_choice(facts rules.run_facts, only_ids bigint[], without_ids bigint[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  stray bigint[];
begin
  if check_choice.only_ids is not null and check_choice.without_ids is not null then
    perform holdfast.refuse('RN005', 'only and without are both set', 'leave one out', 'only');
  end if;
  stray := array(select u.id from unnest(coalesce(check_choice.only_ids, check_choice.without_ids)) u (id)
                  where not exists (select from rules.target_values v
                                     where v.step_id = u.id and v.run_id = facts.run_id)
                  order by 1 limit 5);
  if stray <> '{}' then
    perform holdfast.refuse('RN005', format('run %s has no targets %s', facts.run_id, array_to_string(stray, ', ')),
                            'rules.rule_targets lists them',
                            case when check_choice.only_ids is null then 'without' else 'only' end);
  end if;
end
$$;
