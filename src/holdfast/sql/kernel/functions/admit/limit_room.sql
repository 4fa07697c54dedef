-- What limits, whose states the caller has locked, can take at that time, as arrays in the order of `ids`: slots and
-- tokens that are left (null: any number of tokens), whether one is shut (paused, its breaker open, or its probe on its
-- way), whether it waits for a probe, and which step is the first of those of the queue with that priority or a higher
-- one that are parked on it and are not among the candidates. `fits` says that there is room for all candidates, and
-- `rests` which tokens they leave. `is_tight` says that some limit has room for less than twice what is wanted, and
-- `is_awaited` that steps are parked on some. Each limit is to take `each` steps that take 1; null: as `limit_ids` and
-- `pair_charges` say, which, as `families`, `tenants` and `has_exact`, are as limits_in_force gives them. `has_buckets`
-- says that some limit has a rate.
create or replace function holdfast.limit_room(
  queue text, priority int, candidates bigint[], wanted int, state_ids bigint[], each int, limit_ids bigint[],
  pair_charges numeric[], families text[], tenants text[], has_exact boolean, pending bigint[],
  clock timestamptz,
  out ids bigint[], out slots int[], out tokens numeric[], out bursts numeric[], out is_shut boolean[],
  out is_half_open boolean[], out head_ids bigint[], out rests numeric[], out fits boolean, out is_tight boolean,
  out is_awaited boolean, out has_buckets boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = off  -- what is joined has no index: a nested loop over it is quadratic
set enable_hashjoin = on
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = on
set jit = off
as $$
begin
  -- Another statement than the one that waits for the locks: it sees what those committed who had them before. Rules
  -- are found as by limit_rule, but a family's is looked up once for all of its values.
  with family as materialized (
    select r.*
      from holdfast.limits r
     where r.name = any (limit_room.families) and r.tenant = any (limit_room.tenants)),
  exact as materialized (
    select r.*
      from holdfast.limits r
     where limit_room.has_exact
       and r.name = any (array(
             select t.name from holdfast.limit_states t where t.id = any (limit_room.state_ids)))
       and r.tenant = any (limit_room.tenants))
  select coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.slots), '{}'), coalesce(array_agg(l.tokens), '{}'),
         coalesce(array_agg(l.burst), '{}'), coalesce(array_agg(l.is_shut), '{}'),
         coalesce(array_agg(l.is_half_open), '{}'), coalesce(array_agg(l.head_id), '{}'),
         array_agg(l.tokens - l.charge),
         bool_and(not (l.is_shut or l.is_half_open or l.head_id is not null) and l.steps <= l.slots
                  and coalesce(l.charge <= l.tokens, true)),
         bool_or(l.slots < 2 * limit_room.wanted or coalesce(l.tokens < 2 * limit_room.wanted, false)),
         bool_or(l.is_awaited), bool_or(l.tokens is not null)
    into limit_room.ids, limit_room.slots, limit_room.tokens, limit_room.bursts, limit_room.is_shut,
         limit_room.is_half_open, limit_room.head_ids, limit_room.rests, limit_room.fits, limit_room.is_tight,
         limit_room.is_awaited, limit_room.has_buckets
    from (select t.id, r.burst, t.parked > 0 or t.wake_at is not null as is_awaited,
                 coalesce(r.concurrency - t.held
                          - cardinality(array_positions(limit_room.pending, t.id)),  -- guard: pending
                          2147483647) as slots,
                 holdfast.bucket_level(t.tokens, t.filled_at, r.rate, r.per, r.burst, limit_room.clock) as tokens,
                 coalesce(greatest(t.paused_until, r.paused_until, t.open_until) > limit_room.clock, false)
                 or (t.open_until is not null
                     and (holdfast.is_probed(t) or t.id = any (limit_room.pending))) as is_shut,
                 t.open_until is not null as is_half_open,
                 case when t.parked > 0 then (
                   select p.id from holdfast.steps p
                    where p.limited_by = t.id and p.queue = limit_room.queue and coalesce(p.parked_for, '') = 'limit'
                      and p.priority >= limit_room.priority and p.id <> all (limit_room.candidates)
                    order by p.priority desc, p.parked_due_at, p.id
                    limit 1) end as head_id,
                 coalesce(limit_room.each, d.steps) as steps, coalesce(limit_room.each, d.charge, d.steps) as charge
            from holdfast.limit_states t
            left join (select u.limit_id, count(*)::int as steps, sum(u.charge) as charge
                         from unnest(limit_room.limit_ids, limit_room.pair_charges) u (limit_id, charge)
                        where limit_room.each is null
                        group by u.limit_id) d on d.limit_id = t.id
            left join family f on f.name = coalesce(holdfast.limit_family(t.name), t.name) and f.tenant = t.tenant
            left join exact e on e.name = t.name and e.tenant = t.tenant
           cross join lateral (
             select case when e.name is null then f.concurrency else e.concurrency end as concurrency,
                    case when e.name is null then f.rate else e.rate end as rate,
                    case when e.name is null then f.per else e.per end as per,
                    case when e.name is null then f.burst else e.burst end as burst,
                    case when e.name is null then f.paused_until else e.paused_until end as paused_until) r
           where t.id = any (limit_room.state_ids)
          ) l;  -- guard: later
end
$$;
