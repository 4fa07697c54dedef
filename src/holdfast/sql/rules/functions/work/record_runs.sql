-- The kernel calls it with the runs that moved, whichever path moved them. A new run must have a plan, and rules.apply
-- queues it: it checks the login's right, the expiry and the hash. A run that opens must share no item with another
-- open one, and must not be rolled back meanwhile. Records whether it is open, and why it ended where its targets do
-- not say. The passes that check it are planned when it ends.
create or replace function rules.record_runs(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  is_announced constant boolean := coalesce(current_setting('holdfast.actor_kind', true), '') <> '';
  move holdfast.shared_move;
  facts rules.run_facts;
begin
  foreach move in array record_runs.moves loop
    select f.* into facts from rules.run_facts f where f.run_id = move.run_id;
    if facts.run_id is null and (move.event <> 'created' or not is_announced) then
      continue;  -- inserted by hand: violations() lists it
    end if;
    if facts.run_id is null then  -- guard: plan
      perform holdfast.refuse('RN005', format('rule run %s has no plan', move.run_id),
                              'stage its targets with rules.stage_targets() and call rules.take_preview()');
    end if;
    continue when move.event = 'created';
    if move.from_state = 'PREVIEW' and is_announced and facts.selection is null then  -- guard: applied
      perform holdfast.refuse('RN010', format('run %s has not been applied', move.run_id),
                              'apply its plan with rules.apply()', move.run_id::text);
    end if;
    if move.to_state in ('QUEUED', 'APPLYING') and not facts.is_open then
      perform rules.lock_channel(facts);
      perform rules.refuse_undone(facts);
      perform rules.refuse_shared(facts);
      if facts.undoes is not null then
        perform rules.check_undoable(facts, move.from_state = 'PREVIEW');
      end if;
      update rules.run_facts f set is_open = true, error = null, reason = null, opened_at = holdfast.clock()
       where f.run_id = facts.run_id;
      perform rules.count_apply(facts, move.from_state);
    elsif move.to_state not in ('QUEUED', 'APPLYING') and facts.is_open then
      update rules.run_facts f
         set is_open = false, is_settling = false, reason = case when f.included = 0 then 'no_targets' end
       where f.run_id = facts.run_id;
      perform rules.count_end(facts);
      perform rules.plan_passes(facts);
    end if;
    if move.event = 'by_hand' and move.to_state = 'APPLIED' then
      perform rules.refuse_unapplied(facts);
    end if;
  end loop;
end
$$;
