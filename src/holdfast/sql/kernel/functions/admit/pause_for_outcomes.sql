-- Closes limits for all workers because an outside system pushed back on steps that were settled just now: the limit
-- that an outcome names, and for an error of type RateLimited with a time those of the step's limits that have a rate
-- or a breaker. Until the time that was asked for, at most as long as the step's policy allows; an earlier pause is
-- never shortened. A rule for all tenants is paused only for a step that is under it.
create or replace function holdfast.pause_for_outcomes(outcomes jsonb, settled bigint[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  wanted record;
  limit_ids bigint[] := '{}';
begin
  for wanted in
    select t.name, t.tenant, max(pause_for_outcomes.clock + greatest('0', least(w.retry_after, w.longest))) as until,
           (array_agg(w.owner order by w.retry_after desc))[1] as owner,
           (array_agg(w.reason order by w.retry_after desc))[1] as reason
      from (select o.pause, coalesce(o.retry_after, s.due_at - pause_for_outcomes.clock) as retry_after, s.tenant,
                   s.holds, p.longest_retry_after as longest,
                   o.error ->> 'type' = 'RateLimited' and o.retry_after is not null as is_limited,
                   coalesce(nullif(current_setting('holdfast.actor', true), ''), session_user) as owner,
                   left(holdfast.error_text(o.error), 200) as reason
              from jsonb_to_recordset(pause_for_outcomes.outcomes) o (
                     step_id bigint, outcome text, pause text, retry_after interval, error jsonb)
              join holdfast.steps s on s.id = o.step_id
             cross join lateral holdfast.step_policy(s.policy, s.kind, s.machine, s.tenant) p
             where s.id = any (pause_for_outcomes.settled) and o.outcome in ('retry', 'snooze')
               and (o.pause is not null or (o.error ->> 'type' = 'RateLimited' and o.retry_after is not null))) w
     cross join lateral (
       select w.pause as name, w.tenant where w.pause is not null
       union
       select h.name, h.tenant
         from holdfast.limit_states h
         left join lateral holdfast.limit_rule(h.name, h.tenant) r on true
        where h.id = any (w.holds)
          and (h.name = w.pause or (w.is_limited and num_nonnulls(r.rate, r.breaker_after) > 0))) t
     where (t.tenant = w.tenant or t.tenant = '*') and w.retry_after is not null
     group by t.name, t.tenant
     order by t.name, t.tenant
  loop
    -- A name that only rules for all tenants have is not made a limit of the tenant's own.
    continue when wanted.tenant <> '*'
              and exists (select from holdfast.limit_rule(wanted.name, '*'))
              and not exists (select from holdfast.limit_rule(wanted.name, wanted.tenant));
    insert into holdfast.limit_states (name, tenant) values (wanted.name, wanted.tenant)
    on conflict on constraint limit_states_name_tenant_key do nothing;
    with paused as (
      update holdfast.limit_states h
         set paused_until = wanted.until, paused_by = wanted.owner, pause_reason = wanted.reason
       where h.name = wanted.name and h.tenant = wanted.tenant
         and coalesce(h.paused_until < wanted.until, true)  -- guard: longer
      returning h.id, h.name, h.tenant)
    select limit_ids || array_agg(p.id) into limit_ids from paused p;
    insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, reason, payload)
    select holdfast.clock(),  -- not the settle's clock: claims may have had the state's lock since then
           h.tenant, h.name, 'paused', 'worker', wanted.owner, wanted.reason,
           jsonb_build_object('until', wanted.until)
      from holdfast.limit_states h
     where h.name = wanted.name and h.tenant = wanted.tenant and h.id = limit_ids[cardinality(limit_ids)];
  end loop;
  perform holdfast.refresh_limits(limit_ids, pause_for_outcomes.clock);
end
$$;
