-- Removes what belongs to runs and tasks that retention is about to remove. Records stay: they are the feed's.
create or replace function ingest.prune_facts(step_ids bigint[], run_ids uuid[])
returns void
language sql
begin atomic
  delete from ingest.starts b where b.step_id = any (prune_facts.step_ids) or b.run_id = any (prune_facts.run_ids);
  delete from ingest.partitions p where p.run_id = any (prune_facts.run_ids);
  delete from ingest.quarantined q where q.run_id = any (prune_facts.run_ids);
  delete from ingest.event_log e where e.run_id = any (prune_facts.run_ids);
  delete from ingest.run_facts r where r.run_id = any (prune_facts.run_ids);
end;
