-- Removes the rule of a limit or family; what was parked on it may run, as far as its other limits admit it. A single
-- limit's pause goes with it. `tenant` is as for define_limit. Tells whether there was anything to remove.
create or replace function holdfast.forget_limit(
  name text, reason text default null, tenant text default null, actor text default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  tenants constant text[] := holdfast.limit_tenants(forget_limit.tenant, format('limit %s', forget_limit.name));
  clock constant timestamptz := holdfast.clock();
  owner text;
  is_changed boolean := false;
begin
  perform holdfast.check_limit_name(forget_limit.name);
  perform holdfast.check_reason(forget_limit.reason);
  perform holdfast.check_name('actor', forget_limit.actor);
  foreach owner in array tenants loop
    continue when not exists (select from holdfast.limits r where r.name = forget_limit.name and r.tenant = owner)
              and not exists (select from holdfast.limit_states s where s.name = forget_limit.name and s.tenant = owner
                                 and s.paused_until is not null);
    perform holdfast.change_rule(forget_limit.name, owner, null);
    insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, reason)
    values (clock, owner, forget_limit.name, 'forgotten', 'user', coalesce(forget_limit.actor, session_user),
            case when forget_limit.actor <> session_user then session_user end, forget_limit.reason);
    is_changed := true;
  end loop;
  return is_changed;
end
$$;
grant execute on function holdfast.forget_limit to hf_operator;
