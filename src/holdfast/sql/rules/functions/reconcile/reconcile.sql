-- Plans a pass over a run, due now: it reads what the channel shows for each price that the run wrote last, and writes
-- nothing there. With `correct` it plans a run that writes the expected prices again. `actor` names the person that the
-- login acts for.
create or replace function rules.reconcile(
  run_id uuid, correct boolean default false, reason text default null, actor text default null)
returns table (pass_id uuid, no int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  facts rules.run_facts := rules.facts_to_change(reconcile.run_id);
  run holdfast.runs;
  made uuid;
begin
  perform holdfast.check_reason(reconcile.reason);
  perform holdfast.check_name('actor', reconcile.actor);
  perform rules.check_channel(facts.channel, facts.tenant);
  -- Locked, so that retention does not remove the run before its pass is there.
  select r.* into run from holdfast.runs r where r.id = facts.run_id for key share;  -- guard: kept
  facts := rules.facts_to_change(reconcile.run_id);
  if run.queued_at is null or (run.succeeded <= facts.rolled_back and rules.count_unknown(run.id) = 0) then
    perform holdfast.refuse('RN010', format('run %s is %s and has no price to check', run.id, run.state),
                            'reconcile a run that was applied', run.id::text);
  end if;
  perform holdfast.set_actor('api', coalesce(reconcile.actor, session_user), reconcile.reason);
  made := rules.plan_pass(facts, 'manual', holdfast.clock(), coalesce(reconcile.correct, false));
  perform holdfast.set_actor();
  return query select a.pass_id, a.no from rules.passes a where a.pass_id = made;
end
$$;
grant execute on function rules.reconcile to hf_operator;
