-- Leases steps that were not admitted to the worker, as if they had been due: with one update, which makes both moves
-- (`queued`, by the window, and `claimed`) and journals both. It takes those of `ids` that could share a call with the
-- first of them, `head`, and returns those that moved. Their calls have up to `size` steps and are numbered after
-- `called`. `holds` are the limits that count them (null: none).
create or replace function holdfast.lease_unadmitted(
  ids bigint[], head holdfast.steps, worker text, lease interval, size int, called int, clock timestamptz,
  holds bigint[])
returns setof holdfast.claimed_step
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  queued constant text := (select m.to_state from holdfast.machine_moves m
                            where m.machine = head.machine and m.from_state = head.state and m.event = 'queued');
  held constant text := (select m.to_state from holdfast.machine_moves m
                          where m.machine = head.machine and m.from_state = coalesce(queued, head.state)
                            and m.event = 'claimed');
begin
  if held is null then
    return;
  end if;
  perform set_config('holdfast.passed', coalesce(queued, ''), true);
  return query
  update holdfast.steps s
     set state = held, last_event = 'claimed', attempt = s.attempt + 1, claimed_at = lease_unadmitted.clock,
         lease_id = nextval('holdfast.lease_ids'), lease_owner = lease_unadmitted.worker,
         holds = lease_unadmitted.holds,  -- guard: holds
         lease_until = lease_unadmitted.clock + lease_unadmitted.lease
   where s.id = any (lease_unadmitted.ids)
     and holdfast.is_unadmitted(s)  -- guard: unadmitted
     and s.state = head.state and s.machine = head.machine
     and s.kind = head.kind and s.tenant = head.tenant and s.queue = head.queue and s.priority = head.priority
     and s.batch_key is not distinct from head.batch_key and s.limits is not distinct from head.limits
     and s.alone is null and s.parked_for is null
  returning s.id, s.run_id, s.kind, s.input, s.attempt, s.lease_id, s.lease_until, s.cursor, s.batch_key,
            case when s.batch_key is not null
                 then lease_unadmitted.called
                      + (width_bucket(s.id, (select lease_unadmitted.ids)) - 1) / lease_unadmitted.size + 1 end,
            case when s.batch_key is not null then s.tenant end, s.alone;
  perform set_config('holdfast.passed', '', true);
end
$$;
