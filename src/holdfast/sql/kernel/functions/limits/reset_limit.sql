-- Puts back the rule that an app defined last for a limit or family, after a person set or removed it. `tenant` is as
-- for define_limit.
create or replace function holdfast.reset_limit(name text, tenant text default null, actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  tenants constant text[] := holdfast.limit_tenants(reset_limit.tenant, format('limit %s', reset_limit.name));
  owner text;
  rule jsonb;
  is_known boolean := false;
begin
  perform holdfast.check_limit_name(reset_limit.name);
  foreach owner in array tenants loop
    select c.payload into rule
      from holdfast.limit_changes c
     where c.name = reset_limit.name and c.tenant = owner and c.event = 'defined' and c.actor_kind = 'worker'
     order by c.id desc
     limit 1;
    continue when not found;
    is_known := true;
    perform holdfast.define_limit(
      reset_limit.name, (rule ->> 'concurrency')::int, (rule ->> 'rate')::numeric, (rule ->> 'per')::interval,
      (rule ->> 'burst')::numeric, (rule ->> 'breaker_after')::int, (rule ->> 'breaker_for')::interval,
      case when rule ? 'breaker_counts' then array(select jsonb_array_elements_text(rule -> 'breaker_counts')) end,
      owner, reset_limit.actor);
  end loop;
  if not is_known then
    perform holdfast.refuse('RN004', format('no app has defined limit %s', reset_limit.name),
                            'define_limit sets its rule, forget_limit removes it');
  end if;
end
$$;
grant execute on function holdfast.reset_limit to hf_operator;
