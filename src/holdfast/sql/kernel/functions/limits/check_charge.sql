-- Refuses a new step that takes more from a bucket than it ever holds. Reads rules and locks nothing: a start may be
-- part of a long transaction.
create or replace function holdfast.check_charge(
  limits text[], weight numeric, queue text, kind text, tenant text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  charge constant numeric := coalesce(check_charge.weight, 1) + coalesce((
    select k.call_weight from holdfast.kinds k
     where k.kind = check_charge.kind and k.tenant in (check_charge.tenant, '*') order by k.tenant = '*' limit 1), 0);
  small record;
begin
  select n.name, r.burst into small
    from unnest(check_charge.limits || array['queue:' || check_charge.queue, 'kind:' || check_charge.kind,
                                             'tenant:' || check_charge.tenant]) n (name)
   cross join lateral (values (check_charge.tenant), ('*')) t (tenant)
   cross join lateral holdfast.limit_rule(n.name, t.tenant) r
   where r.burst < charge
   order by r.burst
   limit 1;
  if found then
    perform holdfast.refuse(
      'RN005', format('the step takes %s from limit %s, whose bucket holds %s', trim_scale(charge), small.name,
                      trim_scale(small.burst)),
      'give the limit a larger burst, or the step a smaller weight', 'weight');
  end if;
end
$$;
