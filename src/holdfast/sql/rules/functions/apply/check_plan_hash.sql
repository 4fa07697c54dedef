-- Refuses the digits of another plan than the run's.
create or replace function rules.check_plan_hash(run_id uuid, digits text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  hash constant text := (select p.plan_hash from rules.plans p where p.run_id = check_plan_hash.run_id);
begin
  if check_plan_hash.digits !~ '^[0-9a-fA-F]{8,64}$' then
    perform holdfast.refuse('RN005', format('a plan is named by 8 to 64 hexadecimal digits, got %s',
                                            to_json(left(check_plan_hash.digits, 80))),
                            format('the plan of run %s is %s', check_plan_hash.run_id, left(hash, 8)), 'plan');
  end if;
  if not starts_with(hash, lower(check_plan_hash.digits)) then  -- guard: hash
    perform holdfast.refuse('RN010', format('the plan of run %s is %s, not %s', check_plan_hash.run_id,
                                            left(hash, greatest(8, length(check_plan_hash.digits))),
                                            check_plan_hash.digits),
                            'look at the plan again before you apply it', 'plan');
  end if;
end
$$;
