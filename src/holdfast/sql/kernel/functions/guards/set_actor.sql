-- Sets who makes the moves that follow in this transaction, and why. While an actor is set, the triggers take a row's
-- last_event for its event; otherwise a change is `by_hand`. A function that sets an actor ends with
-- holdfast.set_actor().
create or replace function holdfast.set_actor(kind text default '', name text default '', reason text default '')
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('holdfast.actor_kind', set_actor.kind, true),
          set_config('holdfast.actor', set_actor.name, true),
          set_config('holdfast.reason', coalesce(set_actor.reason, ''), true);
end
$$;
