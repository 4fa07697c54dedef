-- Counts the steps of a run that are not admitted. Only if some of its steps have parents does it have to read them.
create or replace function holdfast.count_unadmitted(run holdfast.runs)
returns int
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if run.dependent = 0 then
    return run.total - run.live - run.succeeded - run.failed - run.cancelled;
  end if;
  return (select count(*)
            from holdfast.run_steps n
           cross join lateral (select h.* from holdfast.steps h where h.id = n.step_id offset 0) s
           where n.run_id = run.id and holdfast.is_unadmitted(s));
end
$$;
