-- The INSERT trigger of runs: a new run is in an initial state, and its creation is journaled.
create or replace function holdfast.journal_new_runs()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  announced constant text := nullif(current_setting('holdfast.actor_kind', true), '');
  actor constant text := coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user);
  reason constant text := nullif(current_setting('holdfast.reason', true), '');
  login constant text := case when announced in ('user', 'api') and actor <> session_user then session_user end;
  listening constant text[] := array(select c.machine from holdfast.machines c where c.moved is not null);
begin
  perform holdfast.refuse('RN007', format('%s run cannot begin as %s', n.machine, n.state))
     from n
     left join holdfast.machine_states s on s.machine = n.machine and s.state = n.state
    where s.is_initial is not true  -- guard: initial
       or n.finished_at is not null;
  insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind,
                                actor, run_id, reason, login)
  select clock, n.tenant, n.machine, 'new', 'created', n.state, coalesce(announced, 'user'), actor, n.id, reason, login
    from n;
  if listening <> '{}' then
    perform holdfast.call_moved(
       n.machine, array_agg((n.id, 'new', 'created', n.state, null)::holdfast.shared_move))
       from n
      where n.machine = any (listening)
      group by n.machine;
  end if;
  return null;
end
$$;
