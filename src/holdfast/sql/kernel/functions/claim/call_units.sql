-- Groups due steps, given in their order, by the calls that they may share: one row per kind, tenant, batch_key and
-- limits, and one for neighbours that share none. `size` is how many steps a call may have, and `ids` are in the
-- steps' order, as the rows are. Steps of `taken` are left out. If they have one key (`is_one_key`), only the first
-- step is read.
create or replace function holdfast.call_units(
  candidates bigint[], taken bigint[], kinds text[], tenants text[], machine text, is_one_key boolean default false)
returns table (ids bigint[], size int, is_served boolean)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_sort = on
set enable_nestloop = off  -- but for lateral joins, which have no other plan
set enable_hashjoin = on
set enable_mergejoin = off
set jit = off
as $$
begin
  if call_units.is_one_key then
    return query
    select o.ids, coalesce(k.batch, 1),
           holdfast.matches_any(call_units.kinds, s.kind) and holdfast.matches_any(call_units.tenants, s.tenant)
           and holdfast.matches(call_units.machine, s.machine)
      from (select array(select u.id from unnest(call_units.candidates) with ordinality u (id, place)
                          where not exists (select from unnest(call_units.taken) t (id) where t.id = u.id)
                          order by u.place) as ids) o
     cross join lateral (select h.* from holdfast.steps h where h.id = call_units.candidates[1] offset 0) s
      left join lateral (select n.batch from holdfast.kinds n where n.kind = s.kind and n.tenant in (s.tenant, '*')
                          order by n.tenant = '*' limit 1) k on true
     where o.ids <> '{}';
    return;
  end if;
  return query
  with step as materialized (
    select u.id, u.place, s.kind, s.tenant, s.batch_key, s.limits,
           s.batch_key is not null and s.alone is null as may_share,  -- guard: alone
           holdfast.matches_any(call_units.kinds, s.kind) and holdfast.matches_any(call_units.tenants, s.tenant)
           and holdfast.matches(call_units.machine, s.machine) as is_served
      from unnest(call_units.candidates) with ordinality u (id, place)
     cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s
     where not exists (select from unnest(call_units.taken) t (id) where t.id = u.id)),
  sized as (
    select p.*, case when p.may_share then coalesce(k.batch, 1) else 1 end as size
      from step p
      left join (
        select g.kind, g.tenant, b.batch
          from (select distinct o.kind, o.tenant from step o where o.may_share) g
         cross join lateral (select n.batch from holdfast.kinds n where n.kind = g.kind and n.tenant in (g.tenant, '*')
                              order by n.tenant = '*' limit 1) b) k on k.kind = p.kind and k.tenant = p.tenant),
  placed as (
    select z.*, case when z.size = 1 then sum((z.size > 1)::int) over (order by z.place) end as neighbours
      from sized z)
  select array_agg(l.id order by l.place), min(l.size), l.is_served
    from placed l
   group by l.is_served, l.neighbours,
            case when l.size > 1 then l.kind end, case when l.size > 1 then l.tenant end,
            case when l.size > 1 then l.batch_key end, case when l.size > 1 then l.limits end
   order by min(l.place);
end
$$;
