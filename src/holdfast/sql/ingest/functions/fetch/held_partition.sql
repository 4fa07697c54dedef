-- Finds the partition that the caller holds under a lease, and locks its step. Refuses a lost lease.
create or replace function ingest.held_partition(
  step_id bigint, lease_id bigint,
  out step holdfast.steps, out part ingest.partitions, out facts ingest.run_facts, out feed ingest.known_feeds)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  step := ingest.held_step(held_partition.step_id, held_partition.lease_id, '{ingest.partition}');
  select p.* into part from ingest.partitions p where p.step_id = step.id;
  select r.* into facts from ingest.run_facts r where r.run_id = part.run_id;
  select f.* into feed from ingest.known_feeds f where f.feed = facts.feed;
end
$$;
