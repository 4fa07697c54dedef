-- Finds the consolidation step that the caller holds under a lease, and locks it. Refuses a lost lease.
create or replace function ingest.held_consolidation(
  step_id bigint, lease_id bigint, out step holdfast.steps, out facts ingest.run_facts, out feed ingest.known_feeds)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  step := ingest.held_step(held_consolidation.step_id, held_consolidation.lease_id, '{ingest.consolidation}');
  select r.* into facts from ingest.run_facts r where r.run_id = step.run_id;
  select f.* into feed from ingest.known_feeds f where f.feed = facts.feed;
  if (facts.state = 'consolidating' and (facts.failed_workers = 0 or facts.forced)) is not true then  -- guard: valid
    perform holdfast.refuse('RN010', format('run %s is %s and cannot be consolidated', step.run_id, facts.state),
                            'a run is consolidated once its partitions are done, or by force', step.run_id::text);
  end if;
end
$$;
