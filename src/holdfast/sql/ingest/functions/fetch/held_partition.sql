-- Finds the partition that the caller holds under a lease, and locks its step. Refuses a lost lease.
create or replace function ingest.held_partition(
  step_id bigint, lease_id bigint,
  out step holdfast.steps, out part ingest.partitions, out facts ingest.run_facts, out feed ingest.known_feeds)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  select s.* into step from holdfast.steps s
   where s.id = held_partition.step_id and s.machine = 'ingest.partition'
     and s.lease_id = held_partition.lease_id  -- guard: lease
     and holdfast.matches_any(holdfast.allowed_tenants(), s.tenant)
     for update;
  if step.id is null then
    perform holdfast.refuse('RN002', format('partition %s is not held under lease %s', held_partition.step_id,
                                            held_partition.lease_id),
                            'stop working on it: another worker has it, or it is over');
  end if;
  select p.* into part from ingest.partitions p where p.step_id = step.id;
  select r.* into facts from ingest.run_facts r where r.run_id = part.run_id;
  select f.* into feed from ingest.known_feeds f where f.feed = facts.feed;
end
$$;
