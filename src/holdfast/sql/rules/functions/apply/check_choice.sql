-- Refuses a choice of targets that is not one: `only` and `without` at once, and ids of other runs.
create or replace function rules.check_choice(facts rules.run_facts, only_ids bigint[], without_ids bigint[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
  if check_choice.only_ids is not null and check_choice.without_ids is not null then
    perform holdfast.refuse('RN005', 'only and without are both set', 'leave one out', 'only');
  end if;
  perform rules.refuse_stray(facts, coalesce(check_choice.only_ids, check_choice.without_ids),
                             case when check_choice.only_ids is null then 'without' else 'only' end);
end
$$;
