-- The closing rule of a run: the kernel calls it, with the run locked, when no step is live, and fires the event that
-- it returns. All partitions completed: adds the step that consolidates. Some failed: skips the consolidation, and the
-- run fails. The consolidation ended: the run completes or fails.
create or replace function ingest.close_run(run uuid, event text)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  facts ingest.run_facts;
begin
  select r.* into facts from ingest.run_facts r where r.run_id = close_run.run;
  if facts.run_id is null then
    return 'blocked';
  end if;
  if facts.state in ('consolidation_triggered', 'consolidating') then
    return case when exists (
                  select from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
                   where n.run_id = facts.run_id and n.name = ingest.consolidation_name(facts.rounds)
                     and s.state = 'completed') then 'all_succeeded'
                when close_run.event = 'blocked' then 'blocked'
                else 'some_failed' end;
  end if;
  if facts.completed_workers = facts.expected_workers then
    perform ingest.trigger_consolidation(facts.run_id);
    return 'all_succeeded';
  end if;
  if facts.completed_workers + facts.failed_workers < facts.expected_workers then
    return 'blocked';  -- a person cancelled a partition
  end if;
  perform holdfast.move_runs(array[facts.run_id], 'some_failed', holdfast.clock());
  return 'stopped';
end
$$;
