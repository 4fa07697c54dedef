-- The UPDATE trigger of runs: as journal_step_moves, without leases and children.
create or replace function holdfast.journal_run_moves()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on
set enable_seqscan = on
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
  login constant text := case when announced in ('user', 'api') and actor <> session_user then session_user end;
  listening constant text[] := array(select c.machine from holdfast.machines c where c.moved is not null);
begin
  if announced is null then
    perform holdfast.check_by_hand('run', n.machine, n.id::text, o.machine, o.state, n.state, false,
                                   n.finished_at is not null)
       from o join n on n.id = o.id;
  end if;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind,
                                actor, run_id, reason, login)
  select clock, n.tenant, n.machine, o.state, case when announced is null then 'by_hand' else n.last_event end,
         case when announced is null or (
                m.to_state = n.state  -- guard: move
                and announced = any (m.actors)  -- guard: actor
              ) then n.state
              else holdfast.refuse_move(n.machine, o.state, n.last_event, n.state, announced, n.id::text) end,
         coalesce(announced, 'user'), actor, n.id, reason, login
    from o
    join n on n.id = o.id
    left join holdfast.machine_moves m on m.machine = o.machine and m.from_state = o.state and m.event = n.last_event
   where o.state <> n.state;
  if listening <> '{}' then
    perform holdfast.call_moved(n.machine, array_agg((
              n.id, o.state, case when announced is null then 'by_hand' else n.last_event end, n.state, null
            )::holdfast.shared_move))
       from o join n on n.id = o.id
      where n.machine = any (listening) and o.state <> n.state
      group by n.machine;
  end if;
  return null;
end
$$;
