-- Makes those of a run's steps due that were not admitted, because it was stopped, and returns how many. Fires `queued`
-- where the machine of the steps lists it. The caller has called set_actor.
create or replace function holdfast.admit_untried(run holdfast.runs, ids bigint[], clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  fresh constant bigint[] := holdfast.make_due(admit_untried.ids, admit_untried.clock);
begin
  if fresh <> '{}' then
    perform holdfast.tally_runs(array[(run.id, 0, cardinality(fresh), 0, 0, 0)::holdfast.run_delta],
                                admit_untried.clock, fresh);
  end if;
  return cardinality(fresh);
end
$$;
