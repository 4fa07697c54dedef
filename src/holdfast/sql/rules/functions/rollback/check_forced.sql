-- Returns the targets of a run that a rollback is to overwrite by name. Refuses one without a conflict: one that was
-- seen to show what the run wrote, or what was there before.
create or replace function rules.check_forced(facts rules.run_facts, force jsonb)
returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  odd bigint;
begin
  if jsonb_typeof(check_forced.force) is distinct from 'array'
     or jsonb_path_exists(check_forced.force, '$[*] ? (@.type() != "object" || !exists(@.target_id))')
     or jsonb_array_length(check_forced.force) > 10000 then
    perform holdfast.refuse(
      'RN005', 'force must be an array of at most 10000 objects with target_id and what the channel shows',
      'such as [{"target_id": 7, "unit_amount": 1150, "compare_at": null}]', 'force');
  end if;
  select w.target_id into odd
    from jsonb_to_recordset(check_forced.force) w (target_id bigint, unit_amount bigint, compare_at bigint)
    join rules.target_values v on v.step_id = w.target_id and v.run_id = facts.run_id
   where (v.writes_price and w.unit_amount is null)
      or ((not v.writes_price or w.unit_amount = v.price_after)  -- guard: conflict
          and (not v.writes_compare_at or w.compare_at is not distinct from v.compare_at_after))
      or ((not v.writes_price or w.unit_amount = v.price_before)
          and (not v.writes_compare_at or w.compare_at is not distinct from v.compare_at_before))
   limit 1;
  if odd is not null then
    perform holdfast.refuse('RN005', format('target %s has no conflict to overwrite', odd),
                            'force only targets that show neither what was written nor what was there before', 'force');
  end if;
  return array(select w.target_id from jsonb_to_recordset(check_forced.force) w (target_id bigint) order by 1);
end
$$;
