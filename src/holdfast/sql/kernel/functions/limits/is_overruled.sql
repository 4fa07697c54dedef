-- Whether a person set or removed the rule of a limit after an app had defined `rule` for it. Workers define the rules
-- of their app whenever they connect, so they may repeat only rules that no person has overruled. A rule that no app
-- had defined before comes from a change of the code.
create or replace function holdfast.is_overruled(name text, tenant text, rule jsonb)
returns boolean
language sql stable
begin atomic
  select exists (
    select
      from holdfast.limit_changes a
     where a.name = is_overruled.name and a.tenant = is_overruled.tenant
       and a.event = 'defined' and a.actor_kind = 'worker' and a.payload = is_overruled.rule
       and a.id < (select max(p.id)
                     from holdfast.limit_changes p
                    where p.name = is_overruled.name and p.tenant = is_overruled.tenant
                      and p.event in ('defined', 'forgotten') and p.actor_kind = 'user'));
end;
