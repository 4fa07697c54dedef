-- The kernel calls it with the targets that moved, whichever path moved them. Targets begin with their run's preview
-- and never later. One that was applied is entered into the ledger, with the effect in its result (`written` or
-- `found`); if it undoes another, that one is rolled back in the same transaction. One that failed gives its error to
-- the run, if it is the first. One that is retried by hand keeps the number of tries that it had used up.
create or replace function rules.record_targets(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by key, whatever the statistics say
set jit = off
set plan_cache_mode = force_generic_plan  -- one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();
  move holdfast.shared_move;
  facts rules.run_facts;
  undoing bigint[] := '{}';
  lost int;  -- targets of which nobody knows whether they were written
begin
  foreach move in array record_targets.moves loop
    case
      when move.run_id is null then null;  -- inserted by hand: violations() lists it
      when move.event = 'created' then
        perform rules.check_new_targets(move.run_id, cardinality(move.step_ids));
      when move.to_state = 'APPLIED' then
        select f.* into facts from rules.run_facts f where f.run_id = move.run_id;
        perform rules.enter_changes(facts, move.step_ids, clock);
        if facts.undoes is not null then
          undoing := undoing || move.step_ids;
        end if;
      when move.to_state = 'ROLLED_BACK' then
        perform rules.count_rolled_back(move.run_id, cardinality(move.step_ids), move.event);
      when move.to_state = 'FAILED' then
        perform rules.count_tries(move.run_id, move.step_ids, false);
        lost := rules.count_lost(move.step_ids);
        update rules.run_facts f
           set error = coalesce(f.error, (select s.error from holdfast.steps s where s.id = move.step_ids[1])),
               unknown = f.unknown + lost
         where f.run_id = move.run_id and (f.error is null or lost > 0);
      when move.from_state = 'FAILED' and move.to_state = 'QUEUED' then
        if move.event = 'by_hand' then
          perform holdfast.check_budget_by_hand(s) from holdfast.steps s where s.id = any (move.step_ids);
        end if;
        lost := rules.count_lost(move.step_ids);
        if lost > 0 then
          update rules.run_facts f set unknown = f.unknown - lost where f.run_id = move.run_id;
        end if;
        insert into rules.target_marks as t (step_id, tries_before)
        select u.step_id, (select count(*) from holdfast.journal j
                            where j.step_id = u.step_id and j.event in ('retried', 'failed', 'expired'))
          from unnest(move.step_ids) u (step_id)
        on conflict (step_id) do update set tries_before = excluded.tries_before, retries = t.retries + 1;
      when move.event in ('retried', 'expired') then
        perform rules.count_tries(move.run_id, move.step_ids, true);
      else null;
    end case;
  end loop;
  if undoing <> '{}' then
    perform rules.undo_targets(undoing);
  end if;
end
$$;
