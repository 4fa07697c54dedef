-- Leases up to `batch` due steps of `queue` to `worker`, each under a lease of its own. `kinds` names the handlers that
-- the worker has (null: any), `lease` how long it may stay silent (null: as the step's kind says, else 300 s).
-- `machine` limits the claim to the steps of one machine (null: any). Steps of a run that has ended are cancelled
-- instead, a step in an error state is reopened first, and a step whose machine has no such move is parked and
-- reported. Steps of a run that is paused or stopped are taken back. Runs with a window get their next lot. A claim
-- that returns steps wakes a sleeping worker. `free` is how many handlers are idle now: of steps whose limits bind, no
-- more than that are leased (null: any number). `calls` is how many calls of handlers the steps may take (null: any
-- number). Steps of a kind with a batch are claimed by whole calls: those with the same `call` are one.
create or replace function holdfast.claim_steps(
  worker text, queue text default 'default', kinds text[] default null, batch int default 1,
    lease interval default null,
  tenants text[] default null, machine text default null, free int default null, calls int default null)
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
  leases jsonb;
  has_own boolean;   -- a tenant has its own definition of a kind
  has_batches boolean;
  is_batched boolean := false;
  formed holdfast.call_pick;
  numbered bigint[];  -- the steps that have a call's number, ascending
  numbers int[];      -- and these numbers
  called int := 0;
  called_before int;
  wanted int := claim_steps.batch;
  top int;
  is_asleep boolean;
  is_to_record boolean;  -- the worker's row, or steps that it serves now
  is_limited boolean;
  charges_last boolean := true;
  pick holdfast.pick;
  admission holdfast.admission;
  at timestamptz := clock;
  unoccupied int := claim_steps.free;
  claimed int;
  has_claimed boolean := false;
  is_full boolean;
  rest int;
  dropped int;
  is_admitting boolean;  -- some run has steps still to admit
  done text;  -- the value of a call that is made by an assignment: a statement of its own costs more
  lots jsonb[] := '{}';  -- that were made due, and are not counted in their runs
begin
  if serves = '{}' then
    return;  -- the login may act for none of these tenants
  end if;
  if (holdfast.is_name(claim_steps.worker) and claim_steps.batch between 1 and 10000
      and (claim_steps.lease is null or claim_steps.lease between '1 us' and '365 days')) is not true then
    perform holdfast.check_claim(claim_steps.worker, claim_steps.batch, claim_steps.lease);  -- a call costs more
  end if;
  if claim_steps.calls < 1 then
    perform holdfast.refuse('RN005', format('calls must be 1 or more, got %s', claim_steps.calls),
                            'leave it out for any number', 'calls');
  end if;
  -- A new rule counts what is held: it waits for the claims under way, and those that come after it see it.
  done := pg_advisory_xact_lock_shared(hashtextextended('holdfast.limits', 0));  -- guard: rules
  done := holdfast.as_actor('worker', claim_steps.worker);
  -- All lookups of a claim in one statement: each further one costs as much as several of them.
  select (select case when q.paused_at is null then q.top_priority else -1 end  -- guard: pause
            from holdfast.queues q where q.queue = claim_steps.queue),
         w.is_asleep,
         holdfast.is_recorded(w, claim_steps.kinds, serves, claim_steps.machine, clock) is not true
         or exists (select from holdfast.steps s where s.parked_for = 'handler' and s.queue = claim_steps.queue),
         exists (select from holdfast.limits) or exists (select from holdfast.limit_states),
         exists (select from holdfast.runs r where r.to_admit > 0), k.leases, k.has_own, k.has_batches
    into top, is_asleep, is_to_record, is_limited, is_admitting, leases, has_own, has_batches
    from (select jsonb_object_agg(d.kind, d.lease) filter (where d.lease is not null and d.tenant = '*') as leases,
                 bool_or(d.tenant <> '*') as has_own, bool_or(d.batch > 1) as has_batches
            from holdfast.kinds d) k
    left join holdfast.workers w on w.worker = claim_steps.worker and w.queue = claim_steps.queue;
  if is_to_record then
    perform holdfast.record_worker(
      claim_steps.worker, claim_steps.queue, claim_steps.kinds, serves, claim_steps.machine, clock);
  end if;
  for turn in 1 .. 2 loop
    for level in reverse coalesce(top, 9) .. 0 loop  -- guard: priority
      if has_batches then
        is_batched := exists (
          select from holdfast.steps b
           where b.queue = claim_steps.queue and b.priority = level and b.batch_key is not null
             -- not `due_at is not null`: the planner would use the index of due steps
             and (b.due_at is not null or b.limited_by is not null));
      end if;
      <<picks>>
      for _ in 1 .. 20 loop  -- more, if steps of runs that are paused or over lay in front; bounded
        formed := null;
        numbered := null;  -- of another priority
        numbers := null;
        if is_limited then
          admission := holdfast.pick_admitted(
            claim_steps.worker, claim_steps.queue, level, claim_steps.kinds, serves, claim_steps.machine,
            case when is_batched then wanted else least(wanted, claim_steps.calls - called) end, clock, unoccupied,
            claim_steps.calls - called, is_batched, wanted = claim_steps.batch, charges_last);
          if is_batched then
            formed := (admission.ids, array(
              select called + dense_rank() over (order by n.call)::int  -- guard: calls; the numbers have gaps
                from unnest(holdfast.number_calls(admission.ids)) with ordinality n (call, place)
               order by n.place), '{}', false);
          end if;
          unoccupied := unoccupied - admission.tight;
          at := admission.at;
          pick.ids := admission.ids || admission.ended_ids;
          pick.run_ids := case when admission.ended_ids is null then '{}'
                               else array(select s.run_id from holdfast.steps s
                                           where s.id = any (pick.ids) and s.run_id is not null) end;
        elsif is_batched then
          formed := holdfast.pick_calls(
            claim_steps.worker, claim_steps.queue, level, claim_steps.kinds, serves, claim_steps.machine, wanted,
            claim_steps.calls - called, clock, called, wanted = claim_steps.batch);
          pick := (formed.ids, formed.run_ids);
        else
          pick := holdfast.pick_steps(
            claim_steps.worker, claim_steps.queue, level, claim_steps.kinds, serves, claim_steps.machine,
            least(wanted, claim_steps.calls - called), clock);
        end if;
        exit when pick.ids = '{}';
        dropped := cardinality(pick.ids);
        if pick.run_ids <> '{}' then
          pick.ids := holdfast.prepare_runs(pick, clock);
        end if;
        rest := cardinality(pick.ids);
        wanted := wanted - rest;
        dropped := dropped - rest;
        called_before := called;
        if formed is not null then
          called := called + (select count(distinct c.call)::int from unnest(formed.calls) c (call));
          select array_agg(u.id), array_agg(u.call) into numbered, numbers
            from (select o.id, o.call from unnest(formed.ids, formed.calls) o (id, call) order by o.id) u;
        elsif claim_steps.calls is not null then
          called := called + rest;
        end if;
        loop
          if admission.is_charged_last then
            begin
              return query
              select * from holdfast.lease_steps(
                pick.ids, claim_steps.worker, claim_steps.lease, leases, has_own, at, admission, numbered, numbers);
              get diagnostics claimed = row_count;
            exception when serialization_failure then  -- others were faster: charge first, and wait for the limits
              charges_last := false;
              if rest = cardinality(pick.ids) then
                perform set_config('holdfast.has_limits', '', true);  -- their locks were taken back, too
              end if;
              perform set_config('holdfast.position', '', false);  -- guard: position; the steps are before it
              wanted := wanted + rest;
              called := called_before;
              continue picks;
            end;
          else
            return query
            select * from holdfast.lease_steps(
              pick.ids, claim_steps.worker, claim_steps.lease, leases, has_own, at, admission, numbered, numbers);
            get diagnostics claimed = row_count;
          end if;
          rest := rest - claimed;
          has_claimed := has_claimed or claimed > 0;
          exit when rest = 0;
          if holdfast.reopen_failed(pick.ids) = 0 then
            perform holdfast.park_unmovable_due(pick.ids, 'claimed', clock);
            exit;
          end if;
        end loop;
        exit when dropped = 0 or wanted <= 0 or called = claim_steps.calls;
        perform holdfast.clear_front(claim_steps.queue, level, clock);
      end loop;
      exit when wanted <= 0 or called = claim_steps.calls or formed.is_over;
    end loop;
    exit when turn = 2 or not is_admitting;
    is_full := (wanted <= 0 or called = claim_steps.calls or formed.is_over) is true;
    if not is_full and top is distinct from -1 then  -- guard: paused
      begin
        return query
        select * from holdfast.claim_lot(claim_steps.worker, claim_steps.queue, claim_steps.kinds, serves,
                                         claim_steps.machine, claim_steps.lease, wanted, claim_steps.calls - called,
                                         called, clock, is_limited);
        get diagnostics claimed = row_count;
      exception when serialization_failure then  -- a limit has no room by now
        claimed := 0;
      end;
      has_claimed := has_claimed or claimed > 0;
      exit when claimed > 0;
    end if;
    lots := holdfast.take_lots(clock);  -- guard: window
    exit when is_full or lots = '{}';
    perform set_config('holdfast.has_limits', 'yes', true);
  end loop;
  if lots <> '{}' then
    perform holdfast.count_lots(lots, clock);  -- last: it locks the runs, which settles wait for
  end if;
  if is_asleep and has_claimed then
    update holdfast.workers w set is_asleep = false where w.worker = claim_steps.worker and w.queue = claim_steps.queue;
  end if;
  done := holdfast.as_actor();
end
$$;
grant execute on function holdfast.claim_steps to hf_worker;
