-- Calls a machine's `moved` function with the rows that moved. The function runs under default plan settings, whatever
-- the caller's are, and may call set_actor: the caller's actor is restored. Its errors undo the move.
create or replace function holdfast.call_moved(machine text, moves holdfast.shared_move[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = on
set enable_mergejoin = on
set enable_seqscan = on
set enable_bitmapscan = on
set enable_sort = on
set plan_cache_mode = auto
set jit = off
as $$
declare
  actor_kind constant text := coalesce(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(current_setting('holdfast.actor', true), '');
  reason constant text := coalesce(current_setting('holdfast.reason', true), '');
begin
  execute format('select %s($1)', (select holdfast.face_name(c.moved) from holdfast.machines c
                                    where c.machine = call_moved.machine))
    using call_moved.moves;
  if (current_setting('holdfast.actor_kind', true), current_setting('holdfast.actor', true),
      current_setting('holdfast.reason', true)) is distinct from (actor_kind, actor, reason) then  -- a call costs more
    perform holdfast.set_actor(actor_kind, actor, reason);
  end if;
end
$$;
