-- Returns the name of the rule in the input of a schedule: the input has the rule itself, or its name.
create or replace function rules.rule_of_tick(input jsonb)
returns text
language sql immutable
begin atomic
  select coalesce(rule_of_tick.input #>> '{rule,name}', rule_of_tick.input ->> 'rule');
end;
