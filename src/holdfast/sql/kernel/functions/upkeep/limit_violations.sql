-- Limits whose counts are wrong, and steps that are parked on a limit which would admit them and does not say so; part
-- of holdfast.violations().
create or replace function holdfast.limit_violations()
returns table (invariant text, subject text, detail text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with counted as (
    select t.id, t.name, t.tenant, t.held, t.parked, t.wake_at, t.paused_until, t.open_until,
           (select count(*) from holdfast.steps s where s.lease_id is not null and t.id = any (s.holds)) as holders,
           (select count(*) from holdfast.steps s
             where s.limited_by = t.id and coalesce(s.parked_for, '') = 'limit' and s.lease_id is null) as waiting,
           r.paused_until as family_paused_until,
           (select bool_or((holdfast.tokens_suffice_at(t, r, q.charge, c.clock) > c.clock) is not true
                           and (t.held + q.slots > r.concurrency) is not true)
              from holdfast.parked_queues(
                     t.id, case when t.open_until is null then r.concurrency else 0 end, r.burst) q) as has_room,
           t.open_until is not null and holdfast.is_probed(t) as is_probed, c.clock
      from holdfast.limit_states t
     cross join (select holdfast.clock() as clock) c
      left join lateral holdfast.limit_rule(t.name, t.tenant) r on true)
  select 'limit_counts_its_holders', format('limit %s of %s', l.name, l.tenant),
         format('it counts %s, held are %s', l.held, l.holders)
    from counted l where l.held <> l.holders
  union all
  select 'limit_counts_its_queue', format('limit %s of %s', l.name, l.tenant),
         format('it counts %s, parked are %s', l.parked, l.waiting)
    from counted l where l.parked <> l.waiting
  union all
  select 'parked_is_refused', format('limit %s of %s', l.name, l.tenant),
         format('it would admit one of %s parked steps, and is to look at them %s', l.parked,
                coalesce('at ' || l.wake_at, 'never'))
    from counted l
   where l.parked > 0
     and coalesce(greatest(l.paused_until, l.family_paused_until, l.open_until) <= l.clock, true)
     and not l.is_probed and l.has_room and (l.wake_at <= l.clock) is not true
  union all
  select 'parked_on_a_limit', 'step ' || s.id, format('parked for a limit that is not there: %s', s.limited_by)
    from holdfast.steps s
   where s.parked_for = 'limit'
     and (s.parked_due_at is null or not exists (select from holdfast.limit_states t where t.id = s.limited_by))
$$;
