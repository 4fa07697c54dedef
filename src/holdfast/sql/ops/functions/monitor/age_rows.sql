-- Removes up to `batch` ids of pruned runs that the journal no longer knows, and returns how many.
create or replace function ops.age_rows(batch int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  aged int;
begin
  delete from ops.pruned_runs p
   where p.run_id = any (array(
           select o.run_id from ops.pruned_runs o
            where o.pruned_at < holdfast.clock() - (  -- as holdfast.prunings
                    select r.keep + interval '1 month' from holdfast.history_rule('journal') r)
            order by o.pruned_at
            limit age_rows.batch));
  get diagnostics aged = row_count;
  return aged;
end
$$;
