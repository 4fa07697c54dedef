-- Puts a rule in the place of another, of one tenant's limit or family (null: removes it). It waits for the claims
-- under way and keeps new ones waiting until the transaction ends: what they hold is counted, and what comes after goes
-- by the new rule. A bucket keeps its tokens, as far as the new burst has room for them; a new bucket is full.
create or replace function holdfast.change_rule(name text, tenant text, rule holdfast.limits)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  clock timestamptz;
  ids bigint[];
begin
  perform pg_advisory_xact_lock(hashtextextended('holdfast.limits', 0));  -- guard: rules
  clock := holdfast.clock();
  perform from holdfast.steps s where s.lease_until is not null order by s.id for update;  -- settles come to their end
  ids := array(
    select s.id
      from holdfast.limit_states s
     where s.tenant = change_rule.tenant
       and (s.name = change_rule.name
            or (change_rule.name like '%:*' and holdfast.limit_family(s.name) = change_rule.name))
     order by s.id
       for update);
  -- By the old rule, up to now.
  update holdfast.limit_states s
     set tokens = holdfast.tokens_at(s, r, clock), filled_at = greatest(s.filled_at, clock)
    from holdfast.limit_states o
   cross join lateral holdfast.limit_rule(o.name, o.tenant) r
   where s.id = any (ids) and o.id = s.id and s.tokens is not null and r.rate is not null;
  delete from holdfast.limits r where r.name = change_rule.name and r.tenant = change_rule.tenant;
  if change_rule.rule.name is not null then
    insert into holdfast.limits values (change_rule.rule.*);
  end if;
  update holdfast.limit_states s
     set tokens = case when n.rate is not null then least(s.tokens, n.burst) end,
         filled_at = case when n.rate is not null then s.filled_at end,
         bucket_at = case when n.rate is not null then s.bucket_at end,
         paused_until = case when change_rule.rule.name is not null then s.paused_until end,
         paused_by = case when change_rule.rule.name is not null then s.paused_by end,
         pause_reason = case when change_rule.rule.name is not null then s.pause_reason end,
         failures = case when n.breaker_after is not null then s.failures else 0 end,
         open_until = case when n.breaker_after is not null then s.open_until end,
         open_for = case when n.breaker_after is not null then s.open_for end,
         probe_id = case when n.breaker_after is not null then s.probe_id end
    from holdfast.limit_states o
    left join lateral holdfast.limit_rule(o.name, o.tenant) n on true
   where s.id = any (ids) and o.id = s.id;
  perform holdfast.count_holders(change_rule.name, change_rule.tenant);
  perform holdfast.refresh_limits(ids, clock);
end
$$;
