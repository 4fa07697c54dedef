-- Returns the shortest time that a rule keeps anything; null if everything is kept forever. What began later than that
-- need not be looked at. Defaults do not count where a rule for everything was set.
create or replace function holdfast.shortest_keep()
returns interval
language sql stable
begin atomic
  select min(r.keep)
    from holdfast.retention_rules r
   where r.what = 'runs'
     and not (r.is_default and exists (
           select from holdfast.retention_rules a
            where a.what = 'runs' and not a.is_default and a.tenant = '*'
              and num_nonnulls(a.machine, a.queue, a.outcome) = 0));
end;
