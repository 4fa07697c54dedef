-- Lets the breakers of limits, whose states are locked, count how steps ended. A success sets the failures in a row to
-- zero; of one statement's ends the successes count first. Enough failures open the breaker. The end of the probe
-- decides alone what becomes of an open one: success closes it, a failure or a lost lease opens it for twice as long,
-- at most a day, and a probe that was handed back leaves its place to the next step.
create or replace function holdfast.judge_breakers(changes holdfast.limit_change[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  repeats constant bigint[] := coalesce(nullif(current_setting('holdfast.repeats', true), '')::bigint[], '{}');
begin
  with ended as (
    select s.id, s.name, s.tenant, s.open_until, s.open_for, s.probe_id, r.breaker_for, r.breaker_after,
           case when e.successes > 0 then 0 else s.failures end + e.counted as failures, e.probe_event
      from (select u.limit_id,
                   coalesce(-sum(u.held) filter (where u.event in ('succeeded', 'continued')), 0) as successes
              from unnest(judge_breakers.changes) u where u.held < 0 group by u.limit_id) g
      join holdfast.limit_states s on s.id = g.limit_id
     cross join lateral holdfast.limit_rule(s.name, s.tenant) r
     cross join lateral (
       select g.successes,
              coalesce(sum(-u.held - (  -- a call that raised counts once
                select count(*) from unnest(u.step_ids) c (id) where c.id = any (repeats))) filter (  -- guard: once
                where u.event in ('retried', 'failed', 'expired') and u.error_type = any (r.breaker_counts)), 0)::int
                as counted,
              max(u.event) filter (where s.probe_id = any (u.step_ids)) as probe_event
         from unnest(judge_breakers.changes) u
        where u.limit_id = s.id and u.held < 0) e
     where r.breaker_after is not null),
  judged as (
    select e.*,
           case when e.probe_event in ('succeeded', 'continued') then 'closed'
                when e.probe_event in ('retried', 'failed', 'expired') then 'reopened'
                when e.open_until is null and e.failures >= e.breaker_after then 'opened' end as verdict
      from ended e),
  changed as (
    update holdfast.limit_states s
       set failures = case when j.verdict = 'closed' then 0 else j.failures end,
           open_for = case j.verdict when 'closed' then null when 'opened' then j.breaker_for
                                     when 'reopened' then least(2 * j.open_for, greatest(j.open_for, interval '1 day'))
                                     else s.open_for end,
           open_until = case j.verdict
                          when 'closed' then null when 'opened' then judge_breakers.clock + j.breaker_for
                          when 'reopened' then judge_breakers.clock
                                               + least(2 * j.open_for, greatest(j.open_for, interval '1 day'))
                          else s.open_until end,
           probe_id = case when j.probe_event is null then s.probe_id end
      from judged j
     where s.id = j.id
       and (j.verdict is not null or j.probe_event is not null or s.failures <> j.failures)
    returning s.name, s.tenant, s.open_until, s.failures, j.verdict)
  insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, payload)
  select judge_breakers.clock, c.tenant, c.name, case when c.verdict = 'closed' then 'closed' else 'opened' end,
         'system', 'breaker', jsonb_strip_nulls(jsonb_build_object(
           'until', c.open_until, 'failures', c.failures,
           'after_probe', case when c.verdict = 'reopened' then true end))
    from changed c
   where c.verdict is not null;
end
$$;
