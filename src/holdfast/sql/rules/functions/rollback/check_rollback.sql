-- Refuses to roll back a run that is not over, that changed nothing or of which nothing is left, while another rollback
-- of it is open, and a part of a run that is APPLIED: a part of it would be neither applied nor rolled back. The caller
-- has locked the channel.
create or replace function rules.check_rollback(facts rules.run_facts, only_ids bigint[], without_ids bigint[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := (select r from holdfast.runs r where r.id = facts.run_id);
  other uuid;
begin
  if run.state not in ('APPLIED', 'PARTIAL') then
    perform holdfast.refuse(
      'RN010', case run.state when 'ROLLED_BACK' then format('run %s was rolled back: nothing is left to do', run.id)
                              else format('run %s is %s and cannot be rolled back', run.id, run.state) end,
      case when run.state = 'PREVIEW' then 'nothing of it was applied'
           when run.state = 'ROLLED_BACK' then format('to undo that, roll back the run that did it: %s', (
             select string_agg(o.run_id::text, ', ') from rules.run_facts o where o.undoes = run.id))
           when run.state = 'FAILED' and rules.count_unknown(run.id) > 0
           then format('the outcome of %s targets is unknown: settle it first with `holdfast rules retry-failed %s`',
                       rules.count_unknown(run.id), run.id)
           when run.state = 'FAILED' then 'none of its targets was applied'
           else format('stop it first with `holdfast rules stop %s`', run.id) end, run.id::text);
  end if;
  select o.run_id into other from rules.run_facts o where o.undoes = run.id and o.is_open limit 1;
  if other is not null then
    perform holdfast.refuse('RN010', format('run %s, which rolls back run %s, is open', other, run.id),
                            format('wait until it ends, or stop it with `holdfast rules stop %s`', other),
                            other::text);
  end if;
  if run.succeeded <= facts.rolled_back and rules.count_unknown(run.id) = 0 then
    perform holdfast.refuse('RN010', format('nothing of run %s is applied: there is nothing to roll back', run.id),
                            'look at its targets with `holdfast rules targets`', run.id::text);
  end if;
  if run.state = 'APPLIED' and (check_rollback.only_ids is not null or check_rollback.without_ids is not null) then
    perform holdfast.refuse('RN010', format('run %s is APPLIED: it is rolled back as a whole', run.id),  -- guard: scope
                            'leave out only and without; a part can be rolled back of a PARTIAL run', 'only');
  end if;
end
$$;
