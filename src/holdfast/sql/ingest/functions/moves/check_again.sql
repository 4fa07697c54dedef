-- Refuses to reopen or queue a failed run that is not its feed's newest, and to reopen one whose partitions all
-- succeeded or whose consolidation is not out of the way.
create or replace function ingest.check_again(move holdfast.shared_move)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  facts ingest.run_facts;
begin
  select r.* into facts from ingest.run_facts r where r.run_id = move.run_id;
  if exists (select from ingest.run_facts r where r.feed = facts.feed and r.no > facts.no) then  -- guard: newest
    perform holdfast.refuse('RN010', format('run %s is not the newest of feed %s', facts.run_id, facts.feed),
                            'act on the newest run, or start another one', facts.run_id::text);
  end if;
  if move.event = 'reopened' and (
       facts.failed_workers = 0
       or exists (select from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
                   where n.run_id = facts.run_id and s.machine = 'ingest.consolidation'
                     and s.state not in ('completed', 'cancelled'))) then
    perform holdfast.refuse('RN010', format('run %s failed in its consolidation', facts.run_id),
                            'use ingest.resume_consolidation, or ingest.retry_partitions', facts.run_id::text);
  end if;
end
$$;
