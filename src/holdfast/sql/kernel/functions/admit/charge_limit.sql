-- Takes tokens from a limit's bucket for a request beside those that the claim was charged for, in the name of a step
-- that the caller holds. Gives null when they were taken, else how long to wait before asking again: nothing was taken
-- then. The tenant's rule and the rule for all tenants are charged together or not at all. A limit without a rate is
-- charged nothing, but a pause or an open breaker holds the request up.
create or replace function holdfast.charge_limit(
  step_id bigint, lease_id bigint, name text, weight numeric default 1)
returns interval
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  clock timestamptz;
  step holdfast.steps;
  limit_ids bigint[];
  opens_at timestamptz;
begin
  perform holdfast.check_limit_name(charge_limit.name, true);
  perform holdfast.check_weight(charge_limit.weight, 0);
  perform pg_advisory_xact_lock_shared(hashtextextended('holdfast.limits', 0));
  select s.* into step from holdfast.steps s
   where s.id = charge_limit.step_id
     and s.lease_id = charge_limit.lease_id  -- guard: lease
     for no key update;
  if step.id is null
     or not holdfast.matches_any(allowed, step.tenant)  -- guard: tenant
  then
    perform holdfast.refuse('RN002', format('step %s is not held under lease %s', charge_limit.step_id,
                                            charge_limit.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  loop  -- upkeep may remove a state that is full before it is locked
    insert into holdfast.limit_states (name, tenant)
    select charge_limit.name, t.tenant from (values ('*'), (step.tenant)) t (tenant)
     where exists (select from holdfast.limit_rule(charge_limit.name, t.tenant))
       and not exists (select from holdfast.limit_states h where h.name = charge_limit.name and h.tenant = t.tenant)
     order by 2
    on conflict on constraint limit_states_name_tenant_key do nothing;
    limit_ids := array(
      select h.id from holdfast.limit_states h
       where h.name = charge_limit.name and h.tenant in ('*', step.tenant)
       order by h.id
         for update);  -- guard: lock
    exit when not exists (
      select from (values ('*'), (step.tenant)) t (tenant)
       where exists (select from holdfast.limit_rule(charge_limit.name, t.tenant))
         and not exists (select from holdfast.limit_states h
                          where h.name = charge_limit.name and h.tenant = t.tenant and h.id = any (limit_ids)));
  end loop;
  clock := holdfast.clock();
  select max(greatest(h.paused_until, r.paused_until, case when h.open_until > clock then h.open_until end,
                      holdfast.tokens_suffice_at(h, r, charge_limit.weight, clock)))
    into opens_at
    from holdfast.limit_states h
    left join lateral holdfast.limit_rule(h.name, h.tenant) r on true
   where h.id = any (limit_ids);
  if opens_at > clock then  -- guard: tokens
    return least(opens_at - clock, interval '1 day');
  end if;
  update holdfast.limit_states h
     set tokens = holdfast.tokens_at(h, r, clock) - charge_limit.weight,
         filled_at = greatest(h.filled_at, clock), bucket_at = coalesce(h.bucket_at, clock)
    from holdfast.limit_states o
   cross join lateral holdfast.limit_rule(o.name, o.tenant) r
   where h.id = any (limit_ids) and o.id = h.id and r.rate is not null;
  perform holdfast.refresh_limits(limit_ids, clock);
  return null;
end
$$;
grant execute on function holdfast.charge_limit to hf_worker;
