-- What limits can take at that time, as arrays in the order of `ids`: slots and tokens that are left (null: any number
-- of tokens), whether one is shut (paused, its breaker open, or its probe on its way), whether it waits for a probe,
-- and whether steps of the queue with that priority or a higher one are parked on it which are not among the
-- candidates. `fits` says that there is room for all candidates, and `rests` which tokens they leave. `ords`,
-- `limit_ids` and `charges` are as limits_in_force gives them. Only of states that the caller has locked or that can be
-- locked now.
create or replace function holdfast.limit_room(
  queue text, priority int, candidates bigint[], ords int[], limit_ids bigint[], charges numeric[], pending bigint[],
  clock timestamptz,
  out ids bigint[], out slots int[], out tokens numeric[], out bursts numeric[], out is_shut boolean[],
  out is_half_open boolean[], out is_behind boolean[], out rests numeric[], out fits boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  wanted constant bigint[] := array(select u.id from unnest(limit_room.limit_ids) u (id) group by u.id);
begin
  limit_room.ids := array(
    select t.id from holdfast.limit_states t
     where t.id = any (wanted) order by t.id
       for update skip locked);  -- guard: lock
  -- Another statement than the one that waits for the locks: it sees what those committed who had them before.
  select coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.slots), '{}'), coalesce(array_agg(l.tokens), '{}'),
         coalesce(array_agg(l.burst), '{}'), coalesce(array_agg(l.is_shut), '{}'),
         coalesce(array_agg(l.is_half_open), '{}'), coalesce(array_agg(l.is_behind), '{}'),
         array_agg(l.tokens - l.charge),
         count(*) = cardinality(wanted) and bool_and(
           not (l.is_shut or l.is_half_open or l.is_behind) and l.steps <= l.slots
           and coalesce(l.charge <= l.tokens, true))
    into limit_room.ids, limit_room.slots, limit_room.tokens, limit_room.bursts, limit_room.is_shut,
         limit_room.is_half_open, limit_room.is_behind, limit_room.rests, limit_room.fits
    from (select t.id, r.burst,
                 coalesce(r.concurrency - t.held
                          - cardinality(array_positions(limit_room.pending, t.id)),  -- guard: pending
                          2147483647) as slots,
                 holdfast.tokens_at(t, r, limit_room.clock) as tokens,
                 coalesce(greatest(t.paused_until, r.paused_until, t.open_until) > limit_room.clock, false)
                 or (t.open_until is not null
                     and (holdfast.is_probed(t) or t.id = any (limit_room.pending))) as is_shut,
                 t.open_until is not null as is_half_open,
                 t.parked > 0 and exists (
                   select from holdfast.steps p
                    where p.limited_by = t.id and p.queue = limit_room.queue and coalesce(p.parked_for, '') = 'limit'
                      and p.priority >= limit_room.priority and p.id <> all (limit_room.candidates)) as is_behind,
                 d.steps, d.charge
            from holdfast.limit_states t
            join (select u.limit_id, count(*) as steps,
                         coalesce(sum(limit_room.charges[u.ord]), count(*)) as charge
                    from unnest(limit_room.ords, limit_room.limit_ids) u (ord, limit_id)
                   group by u.limit_id) d on d.limit_id = t.id
            left join lateral holdfast.limit_rule(t.name, t.tenant) r on true
           where t.id = any (limit_room.ids)
           order by t.id) l;  -- guard: later
end
$$;
