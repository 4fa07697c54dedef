-- Refuses a change by hand that makes an illegal move, or leaves a row with columns that do not fit its state: a held
-- step needs a lease, a finished row needs an end.
create or replace function holdfast.check_by_hand(
  subject text, machine text, id text, was_machine text, from_state text, to_state text,
    has_lease boolean, has_ended boolean)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  phase constant text := (select t.phase from holdfast.machine_states t
                           where t.machine = check_by_hand.machine and t.state = check_by_hand.to_state);
begin
  if check_by_hand.machine <> check_by_hand.was_machine or phase is null
     or (check_by_hand.from_state <> check_by_hand.to_state
         and not exists (select from holdfast.machine_moves m  -- guard: move
                          where m.machine = check_by_hand.machine and m.from_state = check_by_hand.from_state
                            and m.to_state = check_by_hand.to_state)) then
    perform holdfast.refuse_move(check_by_hand.machine, check_by_hand.from_state, 'by_hand',
                                 check_by_hand.to_state, 'user',
                                 check_by_hand.id);
  end if;
  if (check_by_hand.subject = 'step' and phase <> 'open_or_held'
      and (phase = 'held') <> check_by_hand.has_lease)  -- guard: lease
     or (phase = 'over' and not check_by_hand.has_ended)  -- guard: end
     or (phase in ('shut', 'open', 'held', 'open_or_held') and check_by_hand.has_ended) then
    perform holdfast.refuse(
      'RN001', format('%s %s cannot be %s with these columns', check_by_hand.machine, check_by_hand.id,
                      check_by_hand.to_state),
      'set lease_id, lease_owner and lease_until if it is held, finished_at if it is over, otherwise neither');
  end if;
end
$$;
