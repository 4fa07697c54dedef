-- Removes one run that never began and that its face no longer wants, and returns the sweep's row. It never waits. As
-- in prune_runs, a large run goes first and its steps follow in chunks.
create or replace function holdfast.prune_unwanted(
  sweep holdfast.retention_sweep, batch int, clock timestamptz)
returns holdfast.retention_sweep
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  function text;
  ids uuid[];
  run holdfast.runs;
begin
  for function in select f.unwanted from holdfast.faces f where f.unwanted is not null order by f.face loop
    execute format('select %s($1)', holdfast.face_name(function)) into ids using 1;
    select r.* into run
      from holdfast.runs r join holdfast.machine_states t on t.machine = r.machine and t.state = r.state
     where r.id = any (ids) and t.phase = 'shut' and r.live = 0  -- guard: unbegun
       and not exists (select from holdfast.runs c where c.of_run = r.id and c.finished_at is null)
       for update of r skip locked;
    continue when run.id is null;
    perform holdfast.call_prunes('{}', array[run.id]);
    perform holdfast.remember_pruned_runs(array[run.id], array['it never began'], prune_unwanted.clock);
    if run.total > prune_unwanted.batch then
      sweep.run_left := run.id;
    else
      sweep.steps := sweep.steps + holdfast.delete_steps_of_runs(array[run.id]);
    end if;
    delete from holdfast.runs r where r.id = run.id;
    sweep.runs := sweep.runs + 1;
    return sweep;
  end loop;
  return sweep;
end
$$;
