-- Consolidates a run again whose consolidation failed, after the fix: its records are mapped again, also quarantined
-- ones whose raw row is stored. Only the newest run of a feed.
create or replace function ingest.resume_consolidation(run_id uuid, reason text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  facts ingest.run_facts;
  removed int;
begin
  perform holdfast.check_reason(resume_consolidation.reason);
  facts := ingest.newest_run(resume_consolidation.run_id);
  if facts.rounds = 0 or (facts.failed_workers > 0 and not facts.forced) then
    perform holdfast.refuse(
      'RN010', format('%s of %s partitions of run %s failed', facts.failed_workers, facts.expected_workers,
                      facts.run_id),
      'retry them with ingest.retry_partitions, or use ingest.force', facts.run_id::text);
  end if;
  perform holdfast.set_actor('user', session_user, resume_consolidation.reason);
  delete from ingest.quarantined q where q.run_id = facts.run_id and q.stage in ('map', 'store');
  get diagnostics removed = row_count;
  update ingest.run_facts r set quarantined = r.quarantined - removed where r.run_id = facts.run_id;
  perform ingest.queue_consolidation(facts.run_id);
  perform holdfast.set_actor();
  return 'consolidation_triggered';
end
$$;
grant execute on function ingest.resume_consolidation to hf_operator;
