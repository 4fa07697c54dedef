-- Locks a run as `lock_run` does. Refuses one that is not over.
create or replace function ops.lock_finished(run_id text, out step holdfast.steps, out facts ops.run_facts)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  held constant record := ops.lock_run(lock_finished.run_id);
begin
  step := held.step;
  facts := held.facts;
  if step.finished_at is null then
    perform holdfast.refuse('RN010', format('run %s is %s: it is not over', facts.run_id, step.state),
                            'wait for its end, or cancel it first with ops.cancel_run', 'p_run_id');
  end if;
end
$$;
