-- Fires `started` on those of the runs that have not started: with the first claim of any of their steps.
create or replace function holdfast.start_claimed_runs(run_ids uuid[], clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.runs r
     set state = m.to_state, last_event = 'started', started_at = start_claimed_runs.clock
    from holdfast.machine_moves m
   where r.id = any (start_claimed_runs.run_ids) and r.started_at is null and r.finished_at is null
     and m.machine = r.machine and m.from_state = r.state and m.event = 'started';
end
$$;
