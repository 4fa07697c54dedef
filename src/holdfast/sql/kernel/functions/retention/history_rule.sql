-- Returns the rule for the months of the journal or for the ticks of schedules: the one that was set, else the
-- default.
create or replace function holdfast.history_rule(what text)
returns setof holdfast.retention_rules
language sql stable rows 1
begin atomic
  select r.* from holdfast.retention_rules r where r.what = history_rule.what order by r.is_default limit 1;
end;
grant execute on function holdfast.history_rule to hf_producer, hf_worker, hf_reader, hf_operator;
