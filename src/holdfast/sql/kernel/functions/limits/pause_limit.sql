-- Closes a limit, or all limits of a family that has a rule, until a time (null: until it is resumed). A name without a
-- rule can be paused too. What is held goes on. `tenant` is as for define_limit.
create or replace function holdfast.pause_limit(
  name text, until timestamptz default null, reason text default null, tenant text default null,
  actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  tenants constant text[] := holdfast.limit_tenants(pause_limit.tenant, format('limit %s', pause_limit.name));
begin
  perform holdfast.check_limit_name(pause_limit.name);
  perform holdfast.check_reason(pause_limit.reason);
  perform holdfast.check_name('actor', pause_limit.actor);
  if pause_limit.until <= clock then
    perform holdfast.refuse('RN005', format('a pause until %s is over already', pause_limit.until),
                            'give a later time, or none', 'until');
  end if;
  perform holdfast.check_due(nullif(pause_limit.until, 'infinity'));
  perform holdfast.set_pause(pause_limit.name, tenants, coalesce(pause_limit.until, 'infinity'),
                             coalesce(pause_limit.actor, session_user), pause_limit.reason);
  insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, reason, payload)
  select clock, u.tenant, pause_limit.name, 'paused', 'user', coalesce(pause_limit.actor, session_user),
         case when pause_limit.actor <> session_user then session_user end, pause_limit.reason,
         jsonb_strip_nulls(jsonb_build_object('until', pause_limit.until))
    from unnest(tenants) u (tenant);
end
$$;
grant execute on function holdfast.pause_limit to hf_operator;
