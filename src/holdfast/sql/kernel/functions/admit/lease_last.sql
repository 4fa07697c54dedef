-- Leases picked steps, as claim_steps does, before their limits are locked, and charges the limits last, so that they
-- are locked for a moment only. `holds` are the limits: each step is under all of them, takes 1 and shares no call.
-- Raises serialization_failure if the limits do not take the steps for certain. It returns no row before that, because
-- rows that were returned are not taken back.
create or replace function holdfast.lease_last(
  ids bigint[], holds bigint[], worker text, lease interval, leases jsonb, has_own boolean, at timestamptz)
returns setof holdfast.claimed_step
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  claimed int;
begin
  return query
  update holdfast.steps s
     set state = m.to_state, last_event = 'claimed', due_at = null, attempt = s.attempt + 1, claimed_at = lease_last.at,
         parked_for = null, parked_due_at = null, limited_by = null, holds = lease_last.holds, charge = null,
         lease_id = nextval('holdfast.lease_ids'), lease_owner = lease_last.worker,
         lease_until = lease_last.at + coalesce(
           lease_last.lease, case when lease_last.has_own then holdfast.lease_of(s.kind, s.tenant)
                                  else (lease_last.leases ->> s.kind)::interval end, interval '300 s')
    from holdfast.machine_moves m
   where s.id = any (lease_last.ids)  -- not a join: its plan stays linear in the batch
     and s.lease_id is null and m.machine = s.machine and m.from_state = s.state and m.event = 'claimed'
  returning s.id, s.run_id, s.kind, s.input, s.attempt, s.lease_id, s.lease_until, s.cursor, s.batch_key, null::int,
            null::text, s.alone;
  get diagnostics claimed = row_count;
  if claimed > 0 then
    perform holdfast.charge_last(lease_last.holds, claimed, lease_last.at);
  end if;
end
$$;
