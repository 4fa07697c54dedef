-- Returns the limits, the weight and the batch key of new steps of a kind for which their starter gave the same, unless
-- the kind takes one of them from the input: then it returns no row. A bulk start asks once, not once per step.
create or replace function holdfast.own_sort(kind text, limits text[], weight numeric, batch_key text, tenant text)
returns table (own_limits text[], own_weight numeric, own_key text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when own_sort.limits is not null or d.limits is not null
              then holdfast.limits_for(own_sort.limits, d.limits, '{}') end,
         case when own_sort.weight is not null or d.weight is not null
              then holdfast.weight_for(own_sort.weight, d.weight, d.call_weight, '{}') end,
         case when own_sort.batch_key is not null or d.batch > 1
              then holdfast.batch_key_for(own_sort.batch_key, d.batch, null, '{}') end
    from (values (1)) one
    left join lateral (
      select o.limits, o.weight, o.call_weight, o.batch, o.batch_by from holdfast.kinds o
       where o.kind = own_sort.kind and o.tenant in (own_sort.tenant, '*') order by o.tenant = '*' limit 1) d on true
   where d.batch_by is null and concat_ws(' ', array_to_string(d.limits, ' '), d.weight) !~ '\{';
$$;
