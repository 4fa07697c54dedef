-- Raises an error if a run is APPLIED but has targets that are not, as the document's function of that name does. A run
-- that is being rolled back may have targets that are ROLLED_BACK.
create or replace function rules.validate_run_state(run_id uuid)
returns void
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  facts constant rules.run_facts := rules.facts_to_change(validate_run_state.run_id);
  failed bigint;
  others bigint;
begin
  if (select r.state from holdfast.runs r where r.id = facts.run_id) <> 'APPLIED' then
    return;
  end if;
  select count(*) filter (where s.state = 'FAILED'), count(*) filter (where s.state <> 'FAILED')
    into failed, others
    from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
   where n.run_id = facts.run_id and s.state not in ('APPLIED', 'ROLLED_BACK') and rules.is_included(facts, s.id);
  if failed > 0 then
    perform holdfast.refuse('RN010', 'Run marked APPLIED but has failed targets',
                            format('%s of run %s failed; `holdfast doctor` lists what else is broken', failed,
                                   facts.run_id), facts.run_id::text);
  end if;
  if others > 0 then
    perform holdfast.refuse('RN010', 'Run marked APPLIED but has targets that are not applied',
                            format('%s of run %s; `holdfast doctor` lists what else is broken', others,
                                   facts.run_id), facts.run_id::text);
  end if;
end
$$;
grant execute on function rules.validate_run_state to hf_producer, hf_worker, hf_reader, hf_operator;
