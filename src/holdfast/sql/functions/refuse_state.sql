-- Raises the error for a row whose lease or end does not go with its state; called by the tables' CHECK only.
create or replace function holdfast.refuse_state(machine text, state text, subject text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  phase constant text := (select s.phase from holdfast.machine_states s
                           where s.machine = refuse_state.machine and s.state = refuse_state.state);
begin
  return holdfast.refuse(
    'RN001',
    case when phase is null then format('%s has no state %s', refuse_state.machine, refuse_state.state)
         else format('%s %s cannot be %s with these columns', refuse_state.machine, refuse_state.subject, refuse_state.state) end,
    case phase when 'held' then 'a held step has a lease (lease_id, lease_owner, lease_until) and no finished_at'
               when 'over' then 'a finished row has finished_at and no lease'
               else 'a row that waits has neither a lease nor finished_at' end);
end
$$;
