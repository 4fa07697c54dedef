-- Opens a run again that had ended with failures, because one of its steps goes on.
create or replace function holdfast.reopen_run(run_id uuid, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ended constant holdfast.runs := (select r from holdfast.runs r
                                    where r.id = reopen_run.run_id and r.finished_at is not null for update);
begin
  if ended.id is not null and holdfast.move_runs(array[ended.id], 'reopened', reopen_run.clock) = 0 then
    perform holdfast.refuse('RN010', format('run %s is %s: its steps stay as they are', ended.id, ended.state),
                            format('%s is final for a %s', ended.state, ended.machine));
  end if;
end
$$;
