-- Schedules that nobody would look at again, or whose ticks are not recorded or not fired; part of
-- holdfast.violations().
create or replace function holdfast.schedule_violations()
returns table (invariant text, subject text, detail text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select 'schedule_has_a_next_tick', format('schedule %s of %s', s.name, s.tenant),
         'it has none, and is neither new, paused, ended nor broken'
    from holdfast.schedules s
   where s.wake_at is null and num_nonnulls(s.paused_at, s.ended_at, s.broken) = 0
  union all
  select 'tick_is_recorded', format('schedule %s of %s', s.name, s.tenant),
         format('its tick at %s is handled and has no row', s.last_at)
    from holdfast.schedules s
   where s.last_at > holdfast.clock() - interval '7 days'  -- retention keeps them longer
     and not exists (select from holdfast.ticks t
                      where t.tenant = s.tenant and t.name = s.name and t.at = s.last_at)
  union all
  select 'planned_ticks_ascend', format('schedule %s of %s', s.name, s.tenant),
         format('tick %s is planned after %s', u.at, u.before)
    from holdfast.schedules s
   cross join lateral (select p.at, lag(p.at, 1, s.after_at) over (order by p.n) as before
                         from unnest(s.upcoming) with ordinality p (at, n)) u
   where u.at <= u.before
  union all
  select 'tick_is_fired', format('schedule %s of %s', s.name, s.tenant),
         format('due at %s, but no worker fired it', s.wake_at)
    from holdfast.schedules s
   where s.wake_at < holdfast.clock() - interval '10 minutes'
     and exists (select from holdfast.workers w
                  where w.started_at < holdfast.clock() - interval '10 minutes' and w.tenants is null
                    and holdfast.is_live_worker(w.seen_at, holdfast.clock()))
$$;
