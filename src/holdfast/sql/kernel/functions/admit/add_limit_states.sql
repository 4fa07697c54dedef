-- Makes the states of limits that have a rule, by their tenant's rule and by the rule for all tenants, and lack a
-- state; returns how many were missing. Without `has_exact`, a value of a family goes by the family's rule alone, which
-- is then looked up once for all of its values.
create or replace function holdfast.add_limit_states(names text[], tenants text[], has_exact boolean)
returns int
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
declare
  new_names text[];
  new_tenants text[];
begin
  with name as materialized (
    select u.name, u.tenant, coalesce(holdfast.limit_family(u.name), u.name) as family
      from unnest(add_limit_states.names, add_limit_states.tenants) u (name, tenant)
     group by u.name, u.tenant),
  ruled as materialized (
    select g.family, g.tenant, r.tenant as rule_tenant
      from (select n.family, n.tenant from name n group by n.family, n.tenant) g
      join (select r.name, r.tenant from holdfast.limits r
             where r.name = any (array(select n.family from name n))) r
        on r.name = g.family and r.tenant in (g.tenant, '*')),
  wanted as (
    select n.name, f.rule_tenant
      from name n
      join ruled f on f.family = n.family and f.tenant = n.tenant
    union
    select n.name, r.tenant
      from name n
      join (select r.name, r.tenant from holdfast.limits r
             where add_limit_states.has_exact and r.name = any (array(select n.name from name n))) r
        on r.name = n.name and r.tenant in (n.tenant, '*'))
  select array_agg(w.name order by w.name, w.rule_tenant), array_agg(w.rule_tenant order by w.name, w.rule_tenant)
    into new_names, new_tenants
    from wanted w
    left join (select t.name, t.tenant from holdfast.limit_states t
                where t.name = any (add_limit_states.names)) t
      on t.name = w.name and t.tenant = w.rule_tenant
   where t.name is null;
  -- By name, and before any state is locked: who makes the same states meanwhile is waited for in one order.
  insert into holdfast.limit_states (name, tenant)
  select u.name, u.tenant from unnest(new_names, new_tenants) u (name, tenant) order by u.name, u.tenant
  on conflict (name, tenant) do nothing;
  return coalesce(cardinality(new_names), 0);
end
$$;
