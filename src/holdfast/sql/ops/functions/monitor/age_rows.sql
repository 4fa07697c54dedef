-- Removes up to `batch` ids of pruned runs, and as many webhook deliveries, that are older than what the journal knows.
-- Returns how many rows it removed.
create or replace function ops.age_rows(batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  since constant timestamptz := holdfast.clock() - (  -- as holdfast.prunings
    select r.keep + interval '1 month' from holdfast.history_rule('journal') r);
  aged int;
  delivered int;
begin
  delete from ops.pruned_runs p
   where p.run_id = any (array(
           select o.run_id from ops.pruned_runs o
            where o.pruned_at < since
            order by o.pruned_at
            limit age_rows.batch));
  get diagnostics aged = row_count;
  delete from ops.deliveries d
   using (select o.tenant, o.source, o.delivery from ops.deliveries o
           where o.received_at < since
           order by o.received_at
           limit age_rows.batch) old
   where d.tenant = old.tenant and d.source = old.source and d.delivery = old.delivery;
  get diagnostics delivered = row_count;
  return aged + delivered;
end
$$;
