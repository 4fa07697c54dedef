-- Finds a run of the login's tenants that a person acts on, with its feed locked. Refuses an unknown run, one that is
-- not planned yet or could not be, and one that has not failed.
create or replace function ingest.newest_run(run_id uuid)
returns ingest.run_facts
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  facts ingest.run_facts;
  known ingest.known_feeds;
  unplanned record;
begin
  select r.* into facts from ingest.run_facts r
   where r.run_id = newest_run.run_id and holdfast.matches_any(allowed, r.tenant);
  if facts.run_id is null then
    select b.feed, s.finished_at is null as is_open into unplanned
      from ingest.starts b join holdfast.steps s on s.id = b.step_id
     where b.run_id = newest_run.run_id and holdfast.matches_any(allowed, b.tenant);
    if found then
      perform holdfast.refuse(
        'RN010', format('run %s %s', newest_run.run_id,
                        case when unplanned.is_open then 'is being planned' else 'could not be planned' end),
        format(case when unplanned.is_open then 'wait for it, or cancel it: holdfast ingest cancel %s'
                    else 'start another one: holdfast ingest run %s' end, unplanned.feed), newest_run.run_id::text);
    end if;
    perform holdfast.refuse_pruned(newest_run.run_id::text);
    perform holdfast.refuse('RN004', format('there is no run %s', newest_run.run_id),
                            'ingest.run_metadata lists them', newest_run.run_id::text);
  end if;
  known := ingest.feed_to_use(facts.feed);
  select r.* into facts from ingest.run_facts r where r.run_id = newest_run.run_id;  -- after the lock: as it is now
  if facts.state <> 'failed' then
    perform holdfast.refuse('RN010', format('run %s is %s, only a failed run can be continued', facts.run_id,
                                            facts.state), null, facts.run_id::text);
  end if;
  perform ingest.refuse_if_active(known.feed);
  return facts;
end
$$;
