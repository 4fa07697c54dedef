-- Takes steps whose lease ran out, and which the caller has locked, from their workers. A step is retried, or fails if
-- its tries are used up or its policy does not retry. Steps whose machine has no such move are parked.
create or replace function holdfast.expire_steps(ids bigint[], clock timestamptz)
returns setof holdfast.settled_step
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  moves constant holdfast.step_move[] := array(
    select (s.id, s.lease_id, e.event, expire_steps.clock + holdfast.backoff(p.policy, s.failures + 1), null,
            jsonb_build_object(
              'type', 'LeaseExpired',
              'message', case when e.event = 'failed' then 'Maximum retry attempts exceeded: ' else '' end
                         || format('worker %s was silent past its lease (attempt %s)', s.lease_owner, s.attempt)),
            null)::holdfast.step_move
      from holdfast.steps s
     cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p
      left join holdfast.machine_moves m on m.machine = s.machine and m.from_state = s.state and m.event = 'expired'
      left join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state,
      lateral (select case when t.phase is distinct from 'over' and (
                             s.failures + 1 >= p.tries  -- guard: budget
                             or not p.retryable  -- guard: retryable
                           ) then 'failed' else 'expired' end as event) e
     where s.id = any (expire_steps.ids));
begin
  if moves = '{}' then
    return;
  end if;
  perform holdfast.set_actor('system', 'rescue');
  return query select m.* from holdfast.move_steps(moves, expire_steps.clock) m;
  perform holdfast.park_unmovable_held(moves, expire_steps.clock);
  if exists (select from holdfast.kinds k where k.batch > 1) then
    perform holdfast.keep_alone(expire_steps.ids);  -- guard: poison
  end if;
  perform holdfast.set_actor();
end
$$;
