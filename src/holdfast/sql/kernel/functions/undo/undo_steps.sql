-- Fires `rolled_back` on steps that are over, because something else has undone their effect, and returns those that
-- moved. Steps that cannot make this move are left as they are. A face calls it in the transaction that settles the
-- undoing. The caller has called set_actor.
create or replace function holdfast.undo_steps(step_ids bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select m.step_id
      from holdfast.move_steps(array(
             select (u.id, null, 'rolled_back', null, null, null, null)::holdfast.step_move
               from unnest(undo_steps.step_ids) u (id) order by u.id)) m
     order by 1);
end
$$;
