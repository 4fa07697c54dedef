-- The states of the limits that steps are under, one pair per step and state: `ords` are places in `candidates`. The
-- limits are those that a step names and those of its queue, kind and tenant, each by its tenant's rule and by the rule
-- for all tenants. A limit that is met for the first time gets its state here. Also what each step is to be charged
-- (null: 1 each) and on what it is parked (null: none is).
create or replace function holdfast.limits_in_force(
  queue text, candidates bigint[],
  out ords int[], out limit_ids bigint[], out charges numeric[], out limited_by bigint[])
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_hashjoin = on
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = on
set jit = off
as $$
declare
  by_queue constant boolean := holdfast.has_limits('queue');
  by_kind constant boolean := holdfast.has_limits('kind');
  by_tenant constant boolean := holdfast.has_limits('tenant');
  has_call_weights constant boolean := exists (select from holdfast.kinds k where k.call_weight is not null);
  new_names text[];
  new_tenants text[];
begin
  loop
    with step as materialized (
      select u.ord::int as ord, h.tenant, h.kind, h.limits, h.limited_by,
             coalesce(h.weight, 1) + case when has_call_weights then coalesce((
               select k.call_weight from holdfast.kinds k
                where k.kind = h.kind and k.tenant in (h.tenant, '*') order by k.tenant = '*' limit 1), 0)
                                          else 0 end as charge
        from unnest(limits_in_force.candidates) with ordinality u (id, ord)
       cross join lateral (  -- offset 0: one by one and by primary key, whatever the statistics say
         select s.tenant, s.kind, s.limits, s.limited_by, s.weight from holdfast.steps s where s.id = u.id offset 0) h),
    alike as materialized (  -- names are looked up once for steps that have the same
      select s.tenant, s.limits, case when by_kind then s.kind end as kind, array_agg(s.ord) as ords
        from step s
       group by 1, 2, 3),
    named as (
      select a.ords, a.tenant, l.name from alike a, unnest(a.limits) l (name)
      union all
      select a.ords, a.tenant, 'queue:' || limits_in_force.queue from alike a where by_queue
      union all
      select a.ords, a.tenant, 'kind:' || a.kind from alike a where by_kind
      union all
      select a.ords, a.tenant, 'tenant:' || a.tenant from alike a where by_tenant),
    known as materialized (
      select n.name, n.tenant, g.tenant as rule_tenant, t.id
        from (select distinct d.name, d.tenant from named d) n
       cross join lateral (values (n.tenant), ('*')) g (tenant)
        left join holdfast.limit_states t on t.name = n.name and t.tenant = g.tenant
       where t.id is not null or exists (select from holdfast.limit_rule(n.name, g.tenant)))
    select p.ords, p.ids,
           case when exists (select from step s where s.charge <> 1)
                then array(select s.charge from step s order by s.ord) end,
           case when exists (select from step s where s.limited_by is not null)
                then array(select s.limited_by from step s order by s.ord) end,
           array(select k.name from known k where k.id is null order by k.name, k.rule_tenant),
           array(select k.rule_tenant from known k where k.id is null order by k.name, k.rule_tenant)
      into limits_in_force.ords, limits_in_force.limit_ids, limits_in_force.charges, limits_in_force.limited_by,
           new_names, new_tenants
      from (select array_agg(u.ord) as ords, array_agg(k.id) as ids
              from named n
              join known k on k.name = n.name and k.tenant = n.tenant
             cross join unnest(n.ords) u (ord)) p;
    exit when new_names = '{}';
    -- By name, and before any state is locked: who makes the same states meanwhile is waited for in one order.
    insert into holdfast.limit_states (name, tenant)
    select distinct u.name, u.tenant from unnest(new_names, new_tenants) u (name, tenant) order by 1, 2
    on conflict (name, tenant) do nothing;
  end loop;
end
$$;
