-- Raises the error for a run that is not there: retention removed it, or the login sees no such run.
create or replace function ops.refuse_missing(run_id text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  step_id constant bigint := (select s from ops.step_of_run(refuse_missing.run_id) s);
begin
  perform holdfast.refuse_pruned(p.id, refuse_missing.run_id)
     from holdfast.pruned(coalesce(step_id::text, refuse_missing.run_id)) p  -- a number is a step's
    where p.machine = 'ops.run';
  perform holdfast.refuse('RN004', format('there is no run %s', refuse_missing.run_id),
                          'ops.runs lists them; queue_run returns the id of a new one', 'p_run_id');
end
$$;
