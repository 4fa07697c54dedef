-- Returns the rule for what ended: the most specific one that was set, else the default. The tenant counts most, then
-- the machine, the queue and the outcome. None: it is kept forever.
create or replace function holdfast.retention_rule(machine text, queue text, outcome text, tenant text)
returns setof holdfast.retention_rules
language sql stable rows 1
begin atomic
  select r.*
    from holdfast.retention_rules r
   where r.what = 'runs'
     and r.tenant in ('*', retention_rule.tenant)
     and coalesce(r.machine = retention_rule.machine, r.machine is null)
     and coalesce(r.queue = retention_rule.queue, r.queue is null)
     and coalesce(r.outcome = retention_rule.outcome, r.outcome is null)
   order by r.is_default, r.tenant = '*', r.machine is null, r.queue is null, r.outcome is null
   limit 1;
end;
