-- Removes a schedule; what its ticks have started goes on, and its ticks stay. Tells whether there was one. `actor`
-- names the person that the login acts for.
create or replace function holdfast.forget_schedule(
  name text, reason text default null, tenant text default 'default', actor text default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('the name of a schedule', coalesce(forget_schedule.name, ''));
  perform holdfast.check_tenant(forget_schedule.tenant);  -- guard: tenant
  perform holdfast.check_reason(forget_schedule.reason);
  perform holdfast.check_name('actor', forget_schedule.actor);
  delete from holdfast.schedules s where s.tenant = forget_schedule.tenant and s.name = forget_schedule.name;
  if not found then
    return false;
  end if;
  perform holdfast.note_schedule(forget_schedule.tenant, forget_schedule.name, 'forgotten', 'user',
                                 forget_schedule.actor, forget_schedule.reason);
  return true;
end
$$;
grant execute on function holdfast.forget_schedule to hf_operator;
