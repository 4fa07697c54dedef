-- The kernel calls it with the passes that moved. One that ends is an event with its counts, and a daily one plans the
-- next, in the same transaction, while its run ended at most 30 days before. Who cancels a daily pass calls off those
-- after it.
create or replace function rules.record_passes(moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  move holdfast.shared_move;
  pass rules.passes;
  facts rules.run_facts;
  run holdfast.runs;
begin
  foreach move in array record_passes.moves loop
    update rules.passes a set is_over = not a.is_over
     where a.pass_id = move.run_id and a.is_over <> (move.to_state in ('done', 'failed', 'cancelled'));
    continue when move.to_state not in ('done', 'failed');
    select a.* into pass from rules.passes a where a.pass_id = move.run_id;
    perform rules.lock_passes(pass.run_id);
    select f.* into facts from rules.run_facts f where f.run_id = pass.run_id;
    select r.* into run from holdfast.runs r where r.id = pass.run_id;
    continue when pass.run_id is null or facts.run_id is null;
    perform holdfast.set_actor('system', 'reconcile', 'a pass ended');
    perform rules.write_completed(pass, facts, move.to_state);
    if pass.pass = 'daily' and run.state in ('APPLIED', 'PARTIAL')
       and rules.next_day(pass.due_at) <= run.finished_at + interval '30 days'
       and not exists (select from rules.passes a join holdfast.runs r on r.id = a.pass_id
                        where a.run_id = run.id and a.pass = 'daily' and a.no > pass.no and r.finished_at is null) then
      perform rules.plan_pass(facts, 'daily', rules.next_day(pass.due_at), (rules.channel_of(facts)).corrects);
    end if;
  end loop;
end
$$;
