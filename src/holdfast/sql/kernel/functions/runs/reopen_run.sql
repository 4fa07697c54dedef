-- Reopens a run that had ended with failures, because one of its steps continues.
create or replace function holdfast.reopen_run(run_id uuid, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  run holdfast.runs;
begin
  -- Locked even if it has not ended: this waits for a settle that is about to close it.
  select r.* into run from holdfast.runs r where r.id = reopen_run.run_id for update;
  if run.id is null then  -- retention was faster
    perform holdfast.refuse_pruned(reopen_run.run_id::text);
    perform holdfast.refuse('RN004', format('there is no run %s', reopen_run.run_id),
                            'find the id with `holdfast runs list`', reopen_run.run_id::text);
  end if;
  if run.finished_at is not null and holdfast.move_runs(array[run.id], 'reopened', reopen_run.clock) = 0 then
    perform holdfast.refuse('RN010', format('run %s is %s and its steps cannot change', run.id, run.state),
                            format('%s is final for a %s', run.state, run.machine), run.id::text);
  end if;
end
$$;
