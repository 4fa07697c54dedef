-- Claims steps of the next lot of a run without making them due first, because all that is due is taken: at most
-- `wanted` steps in at most `most` whole calls (null: any number), which are numbered after `called`. The rest of the
-- lot is made due. It returns nothing if the first step is not for this worker, if the lot has several batch keys, if
-- several runs lack a lot (they take turns by due time) or if somebody else has the run's lock; then take_lots admits
-- the lot. The run's row is locked last, because settles wait for it.
create or replace function holdfast.claim_lot(
  worker text, queue text, kinds text[], tenants text[], machine text, lease interval, wanted int, most int, called int,
  clock timestamptz)
returns setof holdfast.claimed_step
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  lacking constant uuid[] := holdfast.runs_to_fill(2);
  run holdfast.runs;
  room int;
  ids bigint[];
  is_last boolean;
  head holdfast.steps;
  size int := 1;
  count int;
  claimed int;
  rest bigint[] := '{}';
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
  ids := holdfast.next_to_admit(run, run.admitted_until, room);
  is_last := cardinality(ids) < room;
  select s.* into head from holdfast.steps s where s.id = ids[1];
  if (head.queue = claim_lot.queue and holdfast.matches_any(claim_lot.kinds, head.kind)
      and holdfast.matches_any(claim_lot.tenants, head.tenant)  -- guard: tenant
      and holdfast.matches(claim_lot.machine, head.machine)) is not true then
    return;
  end if;
  if head.batch_key is not null then
    size := coalesce((select k.batch from holdfast.kinds k where k.kind = head.kind and k.tenant in (head.tenant, '*')
                       order by k.tenant = '*' limit 1), 1);
  end if;
  if not is_last then
    ids := ids[1 : room / size * size];  -- guard: whole
  end if;
  count := least(cardinality(ids), claim_lot.wanted, coalesce(claim_lot.most, room)::bigint * size);
  if count < cardinality(ids) then
    count := count / size * size;
  end if;
  if count = 0 or not exists (  -- guard: keys; calls of several keys are formed by due time
       select from holdfast.steps s
        where s.id = ids[count] and s.kind = head.kind and s.batch_key is not distinct from head.batch_key) then
    return;
  end if;
  if holdfast.prepare_runs((ids, array[run.id])::holdfast.pick, claim_lot.clock) = '{}' then
    return;
  end if;
  return query
  select * from holdfast.lease_unadmitted(
    ids[1 : count], head, claim_lot.worker,
    coalesce(claim_lot.lease, holdfast.lease_of(head.kind, head.tenant), interval '300 s'), size, claim_lot.called,
    claim_lot.clock);
  get diagnostics claimed = row_count;
  perform holdfast.set_actor('system', 'window');
  if claimed < cardinality(ids) then
    if not is_last then
      ids := ids || holdfast.rest_of_key(run, ids[cardinality(ids)]);  -- guard: key
    end if;
    rest := holdfast.make_due(ids, claim_lot.clock);
  end if;
  perform holdfast.count_lot(
    run, rest, claimed, cardinality(ids), ids[cardinality(ids)], is_last, claim_lot.clock);
  perform holdfast.set_actor('worker', claim_lot.worker);
end
$$;
