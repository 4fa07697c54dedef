-- The steps' UPDATE trigger: writes the journal row of each move by set. Whether the move is legal is the journal's CHECK.
-- A row has moved when its state or its lease number changed. A change that no kernel function announced is by_hand: the
-- kernel then catches up on what hangs on it (waiting children, the run's counts).
create or replace function holdfast.journal_step_moves()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on      -- both sides are transition tables: a nested loop over them is quadratic
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := case when announced is null then session_user::text else current_setting('holdfast.actor', true) end;
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
begin
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor,
                                step_id, run_id, attempt, lease_id, reason, error)
  select clock, n.tenant, n.machine, o.state, case when announced is null then 'by_hand' else n.last_event end, n.state,
         coalesce(announced, 'user'), case when announced = 'worker' then coalesce(o.lease_owner, actor) else actor end, n.id, n.run_id, n.attempt, coalesce(o.lease_id, n.lease_id), reason,
         case when n.error is distinct from o.error then n.error end
    from o join n on n.id = o.id
   where o.state <> n.state or o.lease_id is distinct from n.lease_id;
  if announced is null then
    perform holdfast.catch_up_by_hand(
      array(select n.id from o join n on n.id = o.id
             where o.state <> n.state and n.run_id is not null),
      array(select distinct n.run_id from n where n.run_id is not null));
  end if;
  return null;
end
$$;
