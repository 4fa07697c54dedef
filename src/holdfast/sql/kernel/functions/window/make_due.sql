-- Makes those of the steps due that are not admitted, wakes workers for them and returns them. Fires `queued` where
-- their machine lists it. The caller counts them in their run, and has called set_actor. It reads the primary key's
-- entries of these steps and joins by hash: a lookup of the move per step took as long as the update.
create or replace function holdfast.make_due(ids bigint[], clock timestamptz)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_hashjoin = on
set enable_nestloop = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan  -- only one plan is left: make it once, not per call
set jit = off
as $$
declare
  fresh bigint[];
  queues text[];
begin
  with moves as materialized (  -- of each state: the move, or none
    select t.machine, t.state as from_state, coalesce(m.to_state, t.state) as to_state, m.event
      from holdfast.machine_states t
      left join holdfast.machine_moves m
        on m.machine = t.machine and m.from_state = t.state and m.event = 'queued'),
  admitted as (
    update holdfast.steps s
       set state = m.to_state, last_event = coalesce(m.event, s.last_event),
           due_at = case when s.parked_for is null then make_due.clock end,
           parked_due_at = case when s.parked_for is not null then make_due.clock end
      from moves m
     where s.id = any (make_due.ids) and holdfast.is_unadmitted(s)
       and m.machine = s.machine and m.from_state = s.state
    returning s.id, s.queue)
  select coalesce(array_agg(a.id), '{}'), array_agg(distinct a.queue) into fresh, queues from admitted a;
  perform holdfast.wake(queues);
  return fresh;
end
$$;
