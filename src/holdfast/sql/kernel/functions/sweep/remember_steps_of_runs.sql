-- Records which steps go with runs that remember_pruned_runs has recorded: their journal remains, and
-- holdfast.pruned_steps finds it by their ids. Ids that follow each other take no more room than one.
create or replace function holdfast.remember_steps_of_runs(run_ids uuid[], step_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  reach constant int8range := (
    select int8range(min(holdfast.place_of(u.id)), max(holdfast.place_of(u.id)), '[]')
      from unnest(remember_steps_of_runs.run_ids) u (id));
begin
  update holdfast.prunings p
     set steps = p.steps + (select range_agg(int8range(u.id, u.id, '[]'))
                              from unnest(remember_steps_of_runs.step_ids) u (id))
   where p.span && reach and p.run_ids && remember_steps_of_runs.run_ids
     and remember_steps_of_runs.step_ids <> '{}';
end
$$;
