-- The limits that steps are under: those that a step names and those of its queue, kind and tenant, each by its
-- tenant's rule and by the rule for all tenants. A limit that is met for the first time gets its state here.
-- `state_ids` are the states (null: no step is under a limit). If `is_shared`, each step is under each of them and
-- takes 1; else `step_ids` and `limit_ids` are one pair per step and state, with what the step takes in `pair_charges`
-- (null: 1 each). In the order of the candidates, `charges` is what each takes (null: 1 each), and `limited_by` on what
-- it is parked (null: none is). `families` are the families of the limits and the limits without one, and `tenants`
-- those whose rules may apply; with `has_exact`, some value of a family may have a rule of its own.
create or replace function holdfast.limits_in_force(
  queue text, candidates bigint[],
  out state_ids bigint[], out is_shared boolean, out step_ids bigint[], out limit_ids bigint[],
  out pair_charges numeric[], out charges numeric[], out limited_by bigint[], out families text[],
  out tenants text[], out has_exact boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = off  -- what is joined has no index: a nested loop over it is quadratic
set enable_hashjoin = on
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  first constant holdfast.steps := (
    select s from holdfast.steps s where s.id = limits_in_force.candidates[1]);
  by_queue constant text := case when holdfast.has_limits('queue') then 'queue:' || limits_in_force.queue end;
  by_kind constant text := case when holdfast.has_limits('kind') then 'kind:' end;
  by_tenant constant text := case when holdfast.has_limits('tenant') then 'tenant:' end;
  is_by_itself constant boolean := coalesce(by_queue, by_kind, by_tenant) is not null;
  shared_names constant text[] := array_remove(
    first.limits || array[by_queue, by_kind || first.kind, by_tenant || first.tenant], null);
  has_own constant boolean := exists (select from holdfast.limits r where r.tenant <> '*');
  is_weighed boolean;
  is_parked boolean;
  has_keys boolean;
  calls int[];  -- the place of the first step of each step's call; null: each has its own
  are_single boolean;  -- no step names two limits
  named_steps bigint[];  -- per step and name, or null where all steps have the same names
  names text[];
  name_tenants text[];
  of_all bigint;  -- of the names, how many have a state of the rule for all tenants
  present bigint;  -- pairs of a name and a state
  complete bigint;  -- as many, when no state was missing
begin
  limits_in_force.has_exact := exists (
    select from holdfast.limits r where strpos(r.name, ':') > 0 and r.name not like '%:*');
  select bool_and(s.tenant = first.tenant and (by_kind is null or s.kind = first.kind)
                  and s.limits is not distinct from first.limits),
         coalesce(bool_or(s.weight <> 1), false)
         or exists (select from holdfast.kinds k where k.call_weight is not null),
         bool_or(s.limited_by is not null), coalesce(bool_or(s.batch_key is not null), false),
         not is_by_itself and max(cardinality(s.limits)) = 1,
         array_agg(s.id) filter (where s.limits is not null),
         array_agg(s.limits[1]) filter (where s.limits is not null),
         array_agg(s.tenant) filter (where s.limits is not null)
    into limits_in_force.is_shared, is_weighed, is_parked, has_keys, are_single, named_steps, names, name_tenants
    from holdfast.steps s
   where s.id = any (limits_in_force.candidates);
  if limits_in_force.is_shared and is_weighed then
    is_weighed := exists (  -- without a bucket, weights mean nothing
      select from unnest(shared_names) n (name)
        join holdfast.limits r on r.name in (n.name, holdfast.limit_family(n.name)) and r.rate is not null);
  end if;
  limits_in_force.is_shared := limits_in_force.is_shared and not is_weighed;
  if limits_in_force.is_shared then
    names := shared_names;
    name_tenants := array_fill(first.tenant, array[cardinality(names)]);
    named_steps := null;
  elsif are_single is not true then
    select array_agg(n.id), array_agg(n.name), array_agg(n.tenant)
      into named_steps, names, name_tenants
      from (select s.id, s.tenant,
                   unnest(s.limits || array[by_queue, by_kind || s.kind, by_tenant || s.tenant]) as name
              from holdfast.steps s
             where s.id = any (limits_in_force.candidates)) n
     where n.name is not null;
  end if;
  if coalesce(cardinality(names), 0) = 0 then
    return;
  end if;
  limits_in_force.tenants := '*'::text || array(
    select u.tenant from unnest(name_tenants) u (tenant) group by u.tenant);
  loop
    select array_agg(n.step_id), array_agg(t.id), count(*) filter (where t.tenant = '*'), count(*)
      into limits_in_force.step_ids, limits_in_force.limit_ids, of_all, present
      from unnest(named_steps, names, name_tenants) n (step_id, name, tenant)
      join (select t.id, t.name, t.tenant
              from holdfast.limit_states t
             where t.name = any (names) and t.tenant = any (limits_in_force.tenants)) t
        on t.name = n.name and t.tenant in (n.tenant, '*');
    exit when of_all = cardinality(names) and not has_own;
    -- Others may have made the states since they were read above: then none is missing, and they are read again.
    exit when present = complete;
    complete := case when holdfast.add_limit_states(names, name_tenants, limits_in_force.has_exact) = 0
                     then present end;
  end loop;
  limits_in_force.state_ids := (
    select array_agg(d.id) from (select u.id from unnest(limits_in_force.limit_ids) u (id) group by u.id) d);
  limits_in_force.families := array(
    select coalesce(holdfast.limit_family(u.name), u.name) from unnest(names) u (name) group by 1);
  if is_weighed and limits_in_force.state_ids is not null then
    if has_keys then
      calls := holdfast.number_calls(limits_in_force.candidates);
    end if;
    select array_agg(c.charge order by c.ord) into limits_in_force.charges
      from (select u.ord, coalesce(s.weight, 1) + case
                     when calls is null or calls[u.ord] = u.ord then coalesce((  -- guard: call
                       select k.call_weight from holdfast.kinds k
                        where k.kind = s.kind and k.tenant in (s.tenant, '*') order by k.tenant = '*' limit 1), 0)
                     else 0 end as charge
              from unnest(limits_in_force.candidates) with ordinality u (id, ord)
              join holdfast.steps s on s.id = u.id
             where s.id = any (limits_in_force.candidates)) c;
    select array_agg(c.charge order by p.ord) into limits_in_force.pair_charges
      from unnest(limits_in_force.step_ids) with ordinality p (id, ord)
      join unnest(limits_in_force.candidates, limits_in_force.charges) c (id, charge) on c.id = p.id;
  end if;
  if is_parked and limits_in_force.state_ids is not null then
    select array_agg(s.limited_by order by u.ord) into limits_in_force.limited_by
      from unnest(limits_in_force.candidates) with ordinality u (id, ord)
      join holdfast.steps s on s.id = u.id
     where s.id = any (limits_in_force.candidates);
  end if;
end
$$;
