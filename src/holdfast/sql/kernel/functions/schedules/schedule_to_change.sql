-- Returns a schedule of a tenant that the login may act for, locked.
create or replace function holdfast.schedule_to_change(name text, tenant text, reason text, actor text)
returns holdfast.schedules
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  schedule holdfast.schedules;
begin
  perform holdfast.check_name('the name of a schedule', coalesce(schedule_to_change.name, ''));
  perform holdfast.check_tenant(schedule_to_change.tenant);  -- guard: tenant
  perform holdfast.check_reason(schedule_to_change.reason);
  perform holdfast.check_name('actor', schedule_to_change.actor);
  select s.* into schedule from holdfast.schedules s
   where s.tenant = schedule_to_change.tenant and s.name = schedule_to_change.name
     for update;
  if schedule.id is null then
    perform holdfast.refuse('RN004', format('there is no schedule %s of tenant %s', schedule_to_change.name,
                                            schedule_to_change.tenant),
                            '`holdfast schedules list` shows them', schedule_to_change.name);
  end if;
  return schedule;
end
$$;
