-- The calls that steps form, in the order given: the place of the first step of each step's call. Steps of a kind and
-- tenant with the same batch_key and limits share one, up to the kind's `batch`; a step that shares none has its own.
create or replace function holdfast.number_calls(ids bigint[])
returns int[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_sort = on
set enable_hashjoin = on
set enable_nestloop = on
set jit = off
as $$
begin
  return array(
    select (min(p.place) over (partition by p.kind, p.tenant, p.batch_key, p.limits, p.own, p.nth))::int
      from (select m.*, (row_number() over (partition by m.kind, m.tenant, m.batch_key, m.limits, m.own
                                                order by m.place) - 1) / m.size as nth
              from (select u.place, s.kind, s.tenant, s.batch_key, s.limits,
                           case when s.batch_key is null or s.alone then s.id end as own,
                           coalesce((select k.batch from holdfast.kinds k
                                      where k.kind = s.kind and k.tenant in (s.tenant, '*')
                                      order by k.tenant = '*' limit 1), 1) as size
                      from unnest(number_calls.ids) with ordinality u (id, place)
                     cross join lateral (select h.* from holdfast.steps h where h.id = u.id offset 0) s) m) p
     order by p.place);
end
$$;
