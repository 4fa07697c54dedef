-- Retries failed partitions of a run, those that are named or all (null), from where each one stopped; one whose
-- records were counted and found missing from its beginning. Returns how many. Only the newest run of a feed.
create or replace function ingest.retry_partitions(
  run_id uuid, partition_ids text[] default null, reason text default null)
returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  facts ingest.run_facts;
  step holdfast.steps;
  retried int := 0;
begin
  perform holdfast.check_reason(retry_partitions.reason);
  facts := ingest.newest_run(retry_partitions.run_id);
  perform holdfast.set_actor('user', session_user, retry_partitions.reason);
  update ingest.run_facts r set forced = false, advances = not r.is_backfill where r.run_id = facts.run_id;
  perform ingest.drop_consolidation(facts.run_id);
  for step in
    select s.* from ingest.partitions p join holdfast.steps s on s.id = p.step_id
     where p.run_id = facts.run_id and s.state = 'failed'
       and (retry_partitions.partition_ids is null or p.partition_id = any (retry_partitions.partition_ids))
     order by s.id
       for update of s
  loop
    -- One that failed because records were missing is read from its beginning, as often as at first.
    if (step.cursor ->> 'counting')::boolean then
      perform holdfast.set_cursor(step.id, jsonb_build_object(
        'offset', 0, 'read', 0, 'moved', coalesce((step.cursor ->> 'moved')::int, 0) + 1));
    end if;
    perform holdfast.act_on_step(step, 'reopened');
    retried := retried + 1;
  end loop;
  if retried = 0 then
    perform holdfast.refuse('RN010', format('run %s has no failed partition to retry', facts.run_id),
                            'a run that failed in its consolidation is continued by ingest.resume_consolidation',
                            facts.run_id::text);
  end if;
  perform holdfast.set_actor();
  return retried;
end
$$;
grant execute on function ingest.retry_partitions to hf_operator, hf_producer;
