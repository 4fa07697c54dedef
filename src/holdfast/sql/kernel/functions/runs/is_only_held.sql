-- Whether the live steps of a run are all held: none is due, parked or backing off.
create or replace function holdfast.is_only_held(run holdfast.runs)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- read held steps, not all steps
set jit = off
as $$
begin
  return run.live = (select count(*) from holdfast.steps s where s.lease_until is not null and s.run_id = run.id);
end
$$;
