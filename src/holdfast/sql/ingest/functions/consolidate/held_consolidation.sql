-- Finds the consolidation step that the caller holds under a lease, and locks it. Refuses a lost lease.
create or replace function ingest.held_consolidation(
  step_id bigint, lease_id bigint, out step holdfast.steps, out facts ingest.run_facts, out feed ingest.known_feeds)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  select s.* into step from holdfast.steps s
   where s.id = held_consolidation.step_id and s.machine = 'ingest.consolidation'
     and s.lease_id = held_consolidation.lease_id  -- guard: lease
     and holdfast.matches_any(holdfast.allowed_tenants(), s.tenant)
     for update;
  if step.id is null then
    perform holdfast.refuse('RN002', format('consolidation %s is not held under lease %s', held_consolidation.step_id,
                                            held_consolidation.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  select r.* into facts from ingest.run_facts r where r.run_id = step.run_id;
  select f.* into feed from ingest.known_feeds f where f.feed = facts.feed;
  if (facts.state = 'consolidating' and (facts.failed_workers = 0 or facts.forced)) is not true then  -- guard: valid
    perform holdfast.refuse('RN010', format('run %s is %s and cannot be consolidated', step.run_id, facts.state),
                            'a run is consolidated once its partitions are done, or by force', step.run_id::text);
  end if;
end
$$;
