-- Makes those of the steps due that are not admitted, wakes workers for them and returns them. Fires `queued` where
-- their machine lists it. The caller counts them in their run, and has called set_actor. It reads the primary key's
-- entries of these steps and joins by hash. Whichever side is hashed, steps are locked in the order of their ids. The
-- moves are looked up in a document: a join with them would lose that order, or take as long as the update.
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
  moves constant jsonb := (
    select coalesce(jsonb_object_agg(m.machine || ' ' || m.from_state, m.to_state), '{}')
      from holdfast.machine_moves m where m.event = 'queued');
  fresh bigint[];
  queues text[];
begin
  with admitted as (
    update holdfast.steps s
       set state = coalesce(moves ->> (s.machine || ' ' || s.state), s.state),
           last_event = case when moves ? (s.machine || ' ' || s.state) then 'queued' else s.last_event end,
           due_at = case when s.parked_for is null then make_due.clock end,
           parked_due_at = case when s.parked_for is not null then make_due.clock end
      from (select u.id from unnest(make_due.ids) u (id) order by u.id) o
     where s.id = any (make_due.ids) and s.id = o.id and holdfast.is_unadmitted(s)
    returning s.id, s.queue)
  select coalesce(array_agg(a.id), '{}'), array_agg(distinct a.queue) into fresh, queues from admitted a;
  perform holdfast.wake(queues);
  return fresh;
end
$$;
