-- Refuses ids of targets that do not belong to a run, and names some of them. `given_as` is the caller's name for the
-- list.
create or replace function rules.refuse_stray(facts rules.run_facts, ids bigint[], given_as text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  stray constant bigint[] := array(
    select u.id from unnest(refuse_stray.ids) u (id)
     where not exists (select from rules.target_values v where v.step_id = u.id and v.run_id = facts.run_id)
     order by 1 limit 5);
begin
  if stray <> '{}' then
    perform holdfast.refuse('RN005', format('run %s has no targets %s', facts.run_id,
                                            array_to_string(stray, ', ', 'null')),
                            'rules.rule_targets lists them', refuse_stray.given_as);
  end if;
end
$$;
