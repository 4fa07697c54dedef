-- Returns an open run of a rule on a channel; null if there is none.
create or replace function rules.open_run(rule_id text, channel text, tenant text)
returns uuid
language sql stable
begin atomic
  select f.run_id from rules.run_facts f
   where f.tenant = open_run.tenant and f.channel = open_run.channel and f.is_open and f.rule_id = open_run.rule_id
   order by f.run_id limit 1;
end;
