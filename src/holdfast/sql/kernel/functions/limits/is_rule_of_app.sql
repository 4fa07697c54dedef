-- Whether `rule` is what an app defined last for a limit.
create or replace function holdfast.is_rule_of_app(name text, tenant text, rule jsonb)
returns boolean
language sql stable
begin atomic
  select coalesce((
    select c.payload = is_rule_of_app.rule
      from holdfast.limit_changes c
     where c.name = is_rule_of_app.name and c.tenant = is_rule_of_app.tenant
       and c.event = 'defined' and c.actor_kind = 'worker'
     order by c.id desc
     limit 1), false);
end;
