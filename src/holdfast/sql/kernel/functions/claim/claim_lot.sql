-- Claims steps of the next lot of a run without making them due first, because all that is due is taken: at most
-- `wanted` steps in at most `most` whole calls (null: any number), which are numbered after `called`. The rest of the
-- lot is made due. It returns nothing if the first step is not for this worker, if the lot has several kinds, batch
-- keys or priorities, if several runs lack a lot (they take turns by due time), if a limit of the steps may bind or if
-- somebody else has the run's lock; then take_lots admits the lot. Limits are charged last: if one has no room by then,
-- it raises serialization_failure. The run's row is locked after them, because settles wait for it. A run that has not
-- started is left alone if its steps are under limits, because its row would be locked first.
create or replace function holdfast.claim_lot(
  worker text, queue text, kinds text[], tenants text[], machine text, lease interval, wanted int, most int, called int,
  clock timestamptz, is_limited boolean)
returns setof holdfast.claimed_step
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  lacking constant uuid[] := holdfast.runs_to_fill(2);
  run holdfast.runs;
  room int;
  seen bigint[];
  ids bigint[];  -- those of them that can be admitted
  is_last boolean;
  is_alike boolean;
  head holdfast.steps;
  size int := 1;
  count int;
  claimed int;
  rest bigint[] := '{}';
  under record;
  holds bigint[];  -- the limits of the steps
begin
  if cardinality(lacking) <> 1 or not pg_try_advisory_xact_lock(holdfast.run_lock(lacking[1])) then
    return;
  end if;
  select r.* into run from holdfast.runs r where r.id = lacking[1];
  room := run.window_size - run.live;
  if room <= 0 or run.to_admit = 0 or run.halt is not null or run.finished_at is not null
     or run.first_left is not null or run.admits <> 'untried' then
    return;
  end if;
  seen := holdfast.next_to_admit(run, run.admitted_until, room + 1);
  is_last := cardinality(seen) <= room;  -- guard: last
  seen := seen[1 : room];
  select s.* into head
    from unnest(seen) with ordinality u (id, place)
   cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s
   where holdfast.is_unadmitted(s)
   order by u.place
   limit 1;
  if (head.queue = claim_lot.queue and holdfast.matches_any(claim_lot.kinds, head.kind)
      and holdfast.matches_any(claim_lot.tenants, head.tenant)  -- guard: tenant
      and holdfast.matches(claim_lot.machine, head.machine)
      and head.alone is null and head.parked_for is null) is not true then
    return;
  end if;
  select array_agg(u.id order by u.place),
         bool_and(s.kind = head.kind and s.batch_key is not distinct from head.batch_key and s.priority = head.priority)
    into ids, is_alike
    from unnest(seen) with ordinality u (id, place)
   cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s
   where holdfast.is_unadmitted(s);  -- guard: free
  if is_alike is not true then  -- guard: keys; calls of several keys are formed by due time, higher priorities go first
    return;
  end if;
  if head.batch_key is not null then
    size := coalesce((select k.batch from holdfast.kinds k where k.kind = head.kind and k.tenant in (head.tenant, '*')
                       order by k.tenant = '*' limit 1), 1);
  end if;
  is_last := is_last or (cardinality(ids) >= run.to_admit and exists (  -- guard: counted; others wait or are admitted
    select from holdfast.machines c where c.machine = run.machine and c.admits is null));
  if not is_last then
    ids := ids[1 : cardinality(ids) / size * size];  -- guard: whole; what is left of the lot is whole calls, too
  end if;
  count := least(cardinality(ids), claim_lot.wanted, coalesce(claim_lot.most, room)::bigint * size);
  if count < cardinality(ids) then
    count := count / size * size;
  end if;
  if count = 0 then
    return;
  end if;
  if claim_lot.is_limited then
    select * into under from holdfast.limits_in_force(claim_lot.queue, ids[1 : count]);
    if under.state_ids is not null and (
         under.is_shared  -- guard: weights
         and run.started_at is not null
         and current_setting('holdfast.has_limits', true) is distinct from 'yes'  -- guard: waits
         and holdfast.has_ample_room(under.state_ids, 10 * count, 10 * count, claim_lot.clock)) is not true then
      return;
    end if;
    holds := under.state_ids;
  end if;
  if run.started_at is null then  -- prepare_runs locks the run: steps are locked before it
    perform from holdfast.steps s where s.id = any (ids) order by s.id for update;
  end if;
  if holdfast.prepare_runs((ids, array[run.id])::holdfast.pick, claim_lot.clock) = '{}' then
    return;
  end if;
  return query
  select * from holdfast.lease_unadmitted(
    ids[1 : count], head, claim_lot.worker,
    coalesce(claim_lot.lease, holdfast.lease_of(head.kind, head.tenant), interval '300 s'), size, claim_lot.called,
    claim_lot.clock, holds);
  get diagnostics claimed = row_count;
  if claimed = 0 then  -- somebody else changed them: take_lots looks again
    return;
  end if;
  if holds is not null then
    perform set_config('holdfast.has_limits', 'yes', true);
    perform holdfast.charge_last(holds, claimed, claim_lot.clock);  -- guard: charged
  end if;
  perform holdfast.set_actor('system', 'window');
  if claimed < cardinality(ids) then
    rest := holdfast.make_due(ids, claim_lot.clock);
  end if;
  perform holdfast.count_lot(
    run, rest, claimed, claimed + cardinality(rest),  -- guard: taken; what was not moved is not counted
    case when is_last then seen[cardinality(seen)] else ids[cardinality(ids)] end, is_last, claim_lot.clock);
  perform holdfast.set_actor('worker', claim_lot.worker);
end
$$;
