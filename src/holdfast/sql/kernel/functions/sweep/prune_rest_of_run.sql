-- Removes the next `batch` steps of a large run that is gone itself (prune_runs), and returns the sweep's
-- row moved on.
create or replace function holdfast.prune_rest_of_run(sweep holdfast.retention_sweep, batch int)
returns holdfast.retention_sweep
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  ids constant bigint[] := array(select n.step_id from holdfast.run_steps n
                                  where n.run_id = sweep.run_left order by n.step_id limit prune_rest_of_run.batch);
begin
  perform holdfast.remember_steps_of_runs(array[sweep.run_left], ids);
  perform holdfast.delete_run_steps(ids);
  delete from holdfast.run_steps n where n.run_id = sweep.run_left and n.step_id = any (ids);
  sweep.steps := sweep.steps + cardinality(ids);
  if cardinality(ids) < prune_rest_of_run.batch then
    sweep.run_left := null;
  end if;
  return sweep;
end
$$;
