-- Leases up to `batch` due steps of `queue` to `worker`, each under a lease of its own. `kinds` names the handlers that
-- the worker has (null: any), `lease` how long it may stay silent (null: as the step's kind says, else 300 s).
-- `machine` limits the claim to the steps of one machine (null: any). Steps of a run that has ended are cancelled
-- instead, a step in an error state is reopened first, and a step whose machine has no such move is parked and
-- reported. A claim that returns steps wakes a sleeping worker. `free` is how many handlers are idle now: of steps
-- whose limits bind, no more than that are leased (null: any number).
create or replace function holdfast.claim_steps(
  worker text, queue text default 'default', kinds text[] default null, batch int default 1,
    lease interval default null,
  tenants text[] default null, machine text default null, free int default null)
returns setof holdfast.claimed_step
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off     -- a plan made on an empty table must stay right after a bulk load: by index, whatever the
set enable_bitmapscan = off  -- statistics say
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off  -- before 18 a disabled plan type adds 1e10 to a plan's cost: each call would be compiled
set plan_cache_mode = force_generic_plan  -- only one plan is left: make it once, not per call
as $$
declare
  clock constant timestamptz := holdfast.clock();  -- guard: clock; read once: an index cannot use a volatile call
  serves constant text[] := holdfast.narrow_tenants(claim_steps.tenants);  -- guard: tenant
  leases constant jsonb := (
    select jsonb_object_agg(k.kind, k.lease) from holdfast.kinds k where k.lease is not null and k.tenant = '*');
  has_own constant boolean := exists (select from holdfast.kinds k where k.tenant <> '*');  -- a tenant's own definition
  wanted int := claim_steps.batch;
  top int;
  is_asleep boolean;
  is_limited boolean;
  is_charged boolean := false;  -- some step more or less than 1
  pick holdfast.pick;
  admission holdfast.admission;
  at timestamptz := clock;
  unoccupied int := claim_steps.free;
  claimed int;
  rest int;
begin
  if serves = '{}' then
    return;  -- the login may act for none of these tenants
  end if;
  perform holdfast.check_claim(claim_steps.worker, claim_steps.batch, claim_steps.lease);
  -- A new rule counts what is held: it waits for the claims under way, and those that come after it see it.
  perform pg_advisory_xact_lock_shared(hashtextextended('holdfast.limits', 0));  -- guard: rules
  perform holdfast.set_actor('worker', claim_steps.worker);
  perform holdfast.record_worker(
    claim_steps.worker, claim_steps.queue, claim_steps.kinds, serves, claim_steps.machine, clock);
  select (select case when q.paused_at is null then q.top_priority else -1 end  -- guard: pause
            from holdfast.queues q where q.queue = claim_steps.queue),
         (select w.is_asleep from holdfast.workers w where w.worker = claim_steps.worker
          and w.queue = claim_steps.queue),
         exists (select from holdfast.limits) or exists (select from holdfast.limit_states)
    into top, is_asleep, is_limited;
  for level in reverse coalesce(top, 9) .. 0 loop  -- guard: priority
    if is_limited then
      admission := holdfast.pick_admitted(
        claim_steps.worker, claim_steps.queue, level, claim_steps.kinds, serves, claim_steps.machine, wanted, clock,
        unoccupied);
      unoccupied := unoccupied - admission.tight;
      at := admission.at;
      pick.ids := admission.ids || admission.ended_ids;
      pick.run_ids := case when admission.ended_ids is null then '{}'
                           else array(select s.run_id from holdfast.steps s
                                       where s.id = any (pick.ids) and s.run_id is not null) end;
      is_charged := admission.charges <> '{}';
    else
      pick := holdfast.pick_steps(
        claim_steps.worker, claim_steps.queue, level, claim_steps.kinds, serves, claim_steps.machine, wanted, clock);
    end if;
    continue when pick.ids = '{}';
    wanted := wanted - cardinality(pick.ids);
    if pick.run_ids <> '{}' then
      pick.ids := holdfast.prepare_runs(pick, clock);
    end if;
    rest := cardinality(pick.ids);
    loop
      return query
      update holdfast.steps s
         set state = m.to_state, last_event = 'claimed', due_at = null, attempt = s.attempt + 1, claimed_at = at,
             parked_for = null, parked_due_at = null, limited_by = null,
             holds = case when is_limited
                          then coalesce(admission.shared, (admission.holds ->> s.id::text)::bigint[]) end,
             charge = case when is_charged then (admission.charges ->> s.id::text)::numeric end,
             lease_id = nextval('holdfast.lease_ids'),  -- guard: lease-number
             lease_owner = claim_steps.worker,
             lease_until = at + coalesce(
               claim_steps.lease, case when has_own then holdfast.lease_of(s.kind, s.tenant)
                                       else (leases ->> s.kind)::interval end, interval '300 s')
        from holdfast.machine_moves m
       where s.id = any (pick.ids)  -- not a join: its plan stays linear in the batch
         and s.lease_id is null  -- guard: free
         and m.machine = s.machine
         and m.from_state = s.state  -- guard: state
         and m.event = 'claimed'
      returning s.id, s.run_id, s.kind, s.input, s.attempt, s.lease_id, s.lease_until, s.cursor;
      get diagnostics claimed = row_count;
      rest := rest - claimed;
      if is_asleep and claimed > 0 then
        update holdfast.workers w set is_asleep = false where w.worker = claim_steps.worker
          and w.queue = claim_steps.queue;
        is_asleep := false;
      end if;
      exit when rest = 0;
      if holdfast.reopen_failed(pick.ids) = 0 then
        perform holdfast.park_unmovable_due(pick.ids, 'claimed', clock);
        exit;
      end if;
    end loop;
    exit when wanted <= 0;
  end loop;
  perform holdfast.set_actor();
end
$$;
grant execute on function holdfast.claim_steps to hf_worker;
