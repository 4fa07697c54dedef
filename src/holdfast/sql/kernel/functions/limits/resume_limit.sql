-- Ends the pause of a limit or family, and closes its breaker. `tenant` is as for define_limit.
create or replace function holdfast.resume_limit(
  name text, reason text default null, tenant text default null, actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  tenants constant text[] := holdfast.limit_tenants(resume_limit.tenant, format('limit %s', resume_limit.name));
begin
  perform holdfast.check_limit_name(resume_limit.name);
  perform holdfast.check_reason(resume_limit.reason);
  perform holdfast.check_name('actor', resume_limit.actor);
  perform holdfast.set_pause(resume_limit.name, tenants, null, null, null);
  insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor, login, reason)
  select clock, u.tenant, resume_limit.name, 'resumed', 'user', coalesce(resume_limit.actor, session_user),
         case when resume_limit.actor <> session_user then session_user end, resume_limit.reason
    from unnest(tenants) u (tenant);
end
$$;
grant execute on function holdfast.resume_limit to hf_operator;
