-- Sets who makes the moves that follow in this transaction, and why. While an actor is set, the triggers take a row's
-- last_event for its event; otherwise a change is `by_hand`. A function that sets an actor ends with
-- holdfast.set_actor().
create or replace function holdfast.set_actor(kind text default '', name text default '', reason text default '')
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.as_actor(set_actor.kind, set_actor.name, set_actor.reason);
end
$$;
