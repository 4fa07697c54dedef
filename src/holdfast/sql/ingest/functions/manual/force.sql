-- Consolidates what a run with failed partitions brought (C-18). The watermark stays, so that the next run brings the
-- rest, unless `advance_watermark`. Nothing is deleted in a forced run. Only the newest run of a feed, once all its
-- partitions are over.
create or replace function ingest.force(run_id uuid, advance_watermark boolean default false, reason text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  facts ingest.run_facts;
begin
  perform holdfast.check_reason(force.reason);
  facts := ingest.newest_run(force.run_id);
  if facts.failed_workers = 0 or facts.completed_workers + facts.failed_workers < facts.expected_workers then
    perform holdfast.refuse(
      'RN010', format('run %s has %s failed of %s partitions and cannot be forced', facts.run_id, facts.failed_workers,
                      facts.expected_workers),
      'force is for a run with failed partitions, once the others are done; use ingest.resume_consolidation',
      facts.run_id::text);
  end if;
  perform holdfast.set_actor('user', session_user, force.reason);
  update ingest.run_facts r
     set forced = true, advances = coalesce(force.advance_watermark, false) and not r.is_backfill
   where r.run_id = facts.run_id;
  perform ingest.queue_consolidation(facts.run_id);
  perform holdfast.set_actor();
  return 'consolidation_triggered';
end
$$;
grant execute on function ingest.force to hf_operator;
