-- Returns the sweep's row as a new pass begins with it: from the first step on, with nothing removed yet. What is left
-- of a large run stays.
create or replace function holdfast.begun_sweep(sweep holdfast.retention_sweep, clock timestamptz)
returns holdfast.retention_sweep
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  sweep.phase := 'steps';
  sweep.step_id := 0;
  sweep.run_id := '00000000-0000-0000-0000-000000000000';
  sweep.next_at := null;
  sweep.began_at := begun_sweep.clock;
  sweep.busy := '0';
  sweep.steps := 0;
  sweep.runs := 0;
  sweep.keys := 0;
  sweep.ticks := 0;
  return sweep;
end
$$;
