-- Refuses to open a rollback whose run cannot be rolled back now, or of which more or less is left than when the
-- rollback was planned. The caller has locked the channel.
create or replace function rules.check_undoable(facts rules.run_facts, is_first boolean)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := (select r from holdfast.runs r where r.id = facts.undoes);
  plan constant jsonb := (select p.plan from rules.plans p where p.run_id = facts.run_id);
  undone constant rules.run_facts := (select f from rules.run_facts f where f.run_id = facts.undoes);
begin
  perform rules.check_rollback(undone, null, null);
  if rules.count_unknown(run.id) > 0
     or (check_undoable.is_first and (run.succeeded, undone.rolled_back)
           is distinct from ((plan ->> 'applied')::int, (plan ->> 'rolledBack')::int)) then  -- guard: planned
    perform holdfast.refuse('RN010', format('run %s has changed since rollback %s was planned', run.id, facts.run_id),
                            format('plan again with `holdfast rules rollback %s`', run.id), facts.run_id::text);
  end if;
end
$$;
