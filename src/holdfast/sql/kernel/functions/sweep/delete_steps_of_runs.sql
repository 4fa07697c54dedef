-- Deletes all steps of locked runs, with what belongs to them, and returns how many steps. The runs are recorded as
-- pruned (remember_pruned_runs).
create or replace function holdfast.delete_steps_of_runs(ids uuid[])
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  own constant bigint[] := array(
    select n.step_id from holdfast.run_steps n where n.run_id = any (delete_steps_of_runs.ids));
begin
  perform holdfast.remember_steps_of_runs(delete_steps_of_runs.ids, own);
  perform holdfast.delete_run_steps(own);  -- guard: steps
  delete from holdfast.run_steps n where n.run_id = any (delete_steps_of_runs.ids);
  return cardinality(own);
end
$$;
