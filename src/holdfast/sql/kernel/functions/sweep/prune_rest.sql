-- Removes up to `batch` keys that have expired, as many records of prunings that the journal no longer knows, as many
-- rows of each face that it keeps no longer, and runs that never began. Returns the sweep's row with the counts.
create or replace function holdfast.prune_rest(sweep holdfast.retention_sweep, batch int, clock timestamptz)
returns holdfast.retention_sweep
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  removed int;
begin
  delete from holdfast.keys k
   where (k.tenant, k.key) in (
           select o.tenant, o.key from holdfast.keys o
            where o.expires_at <= prune_rest.clock  -- guard: expiry
            order by o.expires_at
            limit prune_rest.batch
              for update skip locked);
  get diagnostics removed = row_count;
  sweep.keys := sweep.keys + removed;
  delete from holdfast.prunings p
   where p.id in (select o.id from holdfast.prunings o
                   where o.at < prune_rest.clock - (
                           select r.keep + interval '1 month' from holdfast.history_rule('journal') r)
                   order by o.at
                   limit prune_rest.batch);
  sweep.steps := sweep.steps + holdfast.call_ages(prune_rest.batch);
  return holdfast.prune_unwanted(sweep, prune_rest.batch, prune_rest.clock);
end
$$;
