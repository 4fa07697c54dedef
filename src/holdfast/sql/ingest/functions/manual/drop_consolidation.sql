-- Cancels the steps of earlier consolidations of a failed run that are not done. The caller has called set_actor.
create or replace function ingest.drop_consolidation(run_id uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from holdfast.move_steps(array(
    select (s.id, s.lease_id, 'cancelled', null, null, null, null)::holdfast.step_move
      from holdfast.run_steps n
     cross join lateral (select h.* from holdfast.steps h where h.id = n.step_id offset 0) s
     where n.run_id = drop_consolidation.run_id and s.machine = 'ingest.consolidation'
       and s.state not in ('completed', 'cancelled')));
end
$$;
