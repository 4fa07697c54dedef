-- Refuses to add steps to a run that does not exist, belongs to another tenant or has ended. The run stays locked, so
-- that it cannot end in between.
create or replace function holdfast.check_open_run(run_id uuid, tenant text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  run holdfast.runs;
begin
  select r.* into run from holdfast.runs r
   where r.id = check_open_run.run_id and r.tenant = check_open_run.tenant for update;
  if run.id is null then
    perform holdfast.refuse('RN004', format('there is no run %s of tenant %s', check_open_run.run_id,
                                            check_open_run.tenant));
  end if;
  if run.finished_at is not null then
    perform holdfast.refuse('RN010', format('run %s is %s and takes no more steps', run.id,
                                            run.state), 'start another run');
  end if;
end
$$;
