-- Removes up to `batch` ticks of schedules that their rule no longer keeps, the oldest first, and returns the sweep's
-- row with the count.
create or replace function holdfast.prune_ticks(sweep holdfast.retention_sweep, batch int, clock timestamptz)
returns holdfast.retention_sweep
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  rule constant holdfast.retention_rules := (select r from holdfast.history_rule('ticks') r);
  removed int;
begin
  delete from holdfast.ticks t
   where (t.tenant, t.name, t.at) in (
           select o.tenant, o.name, o.at from holdfast.ticks o
            where o.fired_at <= prune_ticks.clock - rule.keep
              and not holdfast.is_needed_tick(o)  -- guard: needed
            order by o.fired_at
            limit prune_ticks.batch
              for update skip locked);
  get diagnostics removed = row_count;
  sweep.ticks := sweep.ticks + removed;
  return sweep;
end
$$;
