-- Refuses to apply a run again with another choice of targets than the first time: the call would seem to have had an
-- effect. Also refuses a run that was rolled back.
create or replace function rules.check_applied_alike(facts rules.run_facts, state text, given jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if check_applied_alike.state = 'ROLLED_BACK' then
    perform holdfast.refuse('RN010', format('run %s was rolled back and cannot be applied', facts.run_id),
                            format('create a new run with `holdfast rules preview --again %s`', facts.run_id),
                            facts.run_id::text);
  end if;
  if check_applied_alike.given <> '{}' and check_applied_alike.given is distinct from facts.selection then
    perform holdfast.refuse('RN010', format('run %s is %s and was applied with another choice: %s', facts.run_id,
                                            check_applied_alike.state, facts.selection),
                            'preview again to apply other targets', facts.run_id::text);
  end if;
end
$$;
