-- Reckons anew from when on limits, whose states the caller has locked, may admit a step that is parked on them, and
-- tells workers that sleep where one may admit a step now. Whatever changes a limit's slots, tokens, pause, breaker or
-- queue comes here: so nothing stays parked that may run.
create or replace function holdfast.refresh_limits(ids bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set jit = off
as $$
declare
  has_batches constant boolean := exists (select from holdfast.kinds k where k.batch > 1);
  awake bigint[];
begin
  with due as (
    select s.id,
           case when s.parked = 0 or s.held >= r.concurrency then null
                when s.open_until is not null and holdfast.is_probed(s) then null
                when r.rate is null and not has_batches
                then nullif(greatest(refresh_limits.clock, s.paused_until, r.paused_until, s.open_until), 'infinity')
                else (select nullif(greatest(q.at, s.paused_until, r.paused_until, s.open_until), 'infinity')
                        from (select min(coalesce(
                                       holdfast.tokens_suffice_at(s, r, c.charge, refresh_limits.clock),
                                       refresh_limits.clock)) as at
                                from holdfast.parked_queues(  -- a probe is a call of one step
                                       s.id, case when s.open_until is null then r.concurrency else 0 end, r.burst) c
                               where (s.held + c.slots > r.concurrency) is not true) q
                       where q.at is not null) end as wake_at
      from holdfast.limit_states s
      left join lateral holdfast.limit_rule(s.name, s.tenant) r on true
     where s.id = any (refresh_limits.ids) and (s.parked > 0 or s.wake_at is not null)),
  changed as (
    update holdfast.limit_states s
       set wake_at = d.wake_at  -- guard: wake
      from due d
     where s.id = d.id and s.wake_at is distinct from d.wake_at
    returning s.id, s.wake_at)
  select array_agg(c.id) into awake from changed c where c.wake_at <= refresh_limits.clock;
  if awake is not null and exists (select from holdfast.workers w where w.is_asleep) then
    perform holdfast.wake(array(
      select distinct q.queue from unnest(awake) a (id) cross join lateral holdfast.parked_queues(a.id) q));
  end if;
end
$$;
