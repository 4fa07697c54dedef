-- Ends the move of a run's steps: closes a run of which nothing is left. If claims parked steps of a run that has been
-- resumed meanwhile, these are moved next.
create or replace function holdfast.end_move(run_id uuid, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  run holdfast.runs;
begin
  select r.* into run from holdfast.runs r where r.id = end_move.run_id;
  if run.finished_at is not null then
    return;
  end if;
  if run.live = 0 and run.to_admit = 0 then
    perform holdfast.close_runs(array[run.id], end_move.clock);
  elsif run.halt is null and holdfast.has_parked(run.id) then
    update holdfast.runs r set moving = 'resumed' where r.id = run.id;
  end if;
end
$$;
