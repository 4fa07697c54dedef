-- Says who makes the moves that follow in this transaction, and why. While it stands, the triggers take a row's
-- last_event for its event; without it a change is `by_hand`. A function that begins to act ends with holdfast.act().
create or replace function holdfast.act(kind text default '', name text default '', reason text default '')
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('holdfast.actor_kind', act.kind, true),
          set_config('holdfast.actor', act.name, true),
          set_config('holdfast.reason', coalesce(act.reason, ''), true);
end
$$;
