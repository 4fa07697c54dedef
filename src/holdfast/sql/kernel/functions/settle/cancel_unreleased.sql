-- Cancels steps that their worker releases and whose machine has no `released` move, with that reason. The caller has
-- called set_actor.
create or replace function holdfast.cancel_unreleased(moves holdfast.step_move[], clock timestamptz)
returns holdfast.settled_step[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  actor constant text := current_setting('holdfast.actor', true);
  settled holdfast.settled_step[];
begin
  perform holdfast.set_actor('worker', actor, 'Worker shutdown (the run outlived the grace period)');
  settled := array(select m from holdfast.move_steps(cancel_unreleased.moves, cancel_unreleased.clock) m);
  perform holdfast.set_actor('worker', actor);
  return settled;
end
$$;
