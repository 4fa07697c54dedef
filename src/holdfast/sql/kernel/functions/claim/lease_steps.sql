-- Leases picked steps to the worker, each under a lease of its own, and returns those that moved. `admission` is null
-- without limits. If it says that the limits are charged last, they are charged after the leases, and
-- serialization_failure is raised if they do not take the steps for certain. No row is returned before that, because
-- rows that were returned are not taken back.
create or replace function holdfast.lease_steps(
  ids bigint[], worker text, lease interval, leases jsonb, has_own boolean, at timestamptz,
  admission holdfast.admission, numbered bigint[], numbers int[])
returns setof holdfast.claimed_step
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  claimed int;
begin
  return query
  update holdfast.steps s
     set state = m.to_state, last_event = 'claimed', due_at = null, attempt = s.attempt + 1,
         claimed_at = lease_steps.at, parked_for = null, parked_due_at = null, limited_by = null,
         holds = case when lease_steps.admission.ids is not null
                      then coalesce(lease_steps.admission.shared, holdfast.holds_of(
                        s.id, lease_steps.admission.holders, lease_steps.admission.firsts,
                        lease_steps.admission.held)) end,
         charge = case when lease_steps.admission.charges <> '{}'  -- some step more or less than 1
                       then (lease_steps.admission.charges ->> s.id::text)::numeric end,
         lease_id = nextval('holdfast.lease_ids'),  -- guard: lease-number
         lease_owner = lease_steps.worker,
         lease_until = lease_steps.at + coalesce(
           lease_steps.lease, case when lease_steps.has_own then holdfast.lease_of(s.kind, s.tenant)
                                   else (lease_steps.leases ->> s.kind)::interval end, interval '300 s')
    from holdfast.machine_moves m
   where s.id = any (lease_steps.ids)  -- not a join: its plan stays linear in the batch
     and s.lease_id is null  -- guard: free
     and m.machine = s.machine
     and m.from_state = s.state  -- guard: state
     and m.event = 'claimed'
  returning s.id, s.run_id, s.kind, s.input, s.attempt, s.lease_id, s.lease_until, s.cursor, s.batch_key,
            -- In selects of their own: these make one flat copy of each array, and every row reads it.
            case when s.batch_key is not null
                 then ((select lease_steps.numbers))[width_bucket(s.id, (select lease_steps.numbered))] end,
            case when s.batch_key is not null then s.tenant end, s.alone;
  get diagnostics claimed = row_count;
  if lease_steps.admission.is_charged_last and claimed > 0 then
    perform holdfast.charge_last(lease_steps.admission.shared, claimed, lease_steps.at);
  end if;
end
$$;
