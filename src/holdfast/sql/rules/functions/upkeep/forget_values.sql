-- Removes what belongs to runs, but not their facts: values, refusals and exceptions.
create or replace function rules.forget_values(run_ids uuid[])
returns void
language sql
begin atomic
  delete from rules.target_values v where v.run_id = any (forget_values.run_ids);
  delete from rules.refused_items x where x.run_id = any (forget_values.run_ids);
  delete from rules.exceptions e where e.run_id = any (forget_values.run_ids);
end;
