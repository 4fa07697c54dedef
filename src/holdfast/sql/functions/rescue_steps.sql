-- Takes up to `batch` steps back from workers that were silent past their lease, the longest silent first: to be tried
-- again, or over when the policy's tries are used up or it does not retry. Any worker may call it, at any time: it rescues the
-- steps of all tenants, and answers with those of its own.
create or replace function holdfast.rescue_steps(batch int default 100)
returns setof holdfast.settled_step
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  picked bigint[];
  moves holdfast.step_move[];
begin
  perform holdfast.check_claim('rescue', rescue_steps.batch, null);
  picked := array(
    select s.id from holdfast.steps s
     where s.lease_until < clock
     order by s.lease_until
     limit rescue_steps.batch
       for update skip locked);
  if picked = '{}' then
    return;
  end if;
  select array_agg((s.id, s.lease_id, e.event, clock + holdfast.backoff(p.policy, s.failures + 1), null,
           jsonb_build_object(
             'type', 'LeaseExpired',
             'message', case when e.event = 'failed' then 'Maximum retry attempts exceeded: ' else '' end
                        || format('worker %s was silent past its lease (attempt %s)', s.lease_owner, s.attempt)),
           null)::holdfast.step_move)
    into moves
    from holdfast.steps s
   cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p
    left join holdfast.machine_moves m on m.machine = s.machine and m.from_state = s.state and m.event = 'expired'
    left join holdfast.machine_states t on t.machine = m.machine and t.state = m.to_state,
    lateral (select case when t.phase is distinct from 'over' and (s.failures + 1 >= p.tries or not p.retryable)
                         then 'failed' else 'expired' end as event) e
   where s.id = any (picked);
  perform holdfast.act('system', 'rescue');
  return query
  select m.* from holdfast.move_steps(moves, clock) m
   where allowed is null
      or exists (select from holdfast.steps s where s.id = m.step_id and s.tenant = any (allowed));
  perform holdfast.hold_back(moves, clock);
  perform holdfast.act();
end
$$;
