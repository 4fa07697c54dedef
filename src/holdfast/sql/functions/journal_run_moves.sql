-- The runs' UPDATE trigger: as journal_step_moves, without leases.
create or replace function holdfast.journal_run_moves()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := case when announced is null then session_user::text else current_setting('holdfast.actor', true) end;
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
begin
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor, run_id, reason)
  select clock, n.tenant, n.machine, o.state, case when announced is null then 'by_hand' else n.last_event end, n.state,
         coalesce(announced, 'user'), actor, n.id, reason
    from o join n on n.id = o.id
   where o.state <> n.state;
  return null;
end
$$;
