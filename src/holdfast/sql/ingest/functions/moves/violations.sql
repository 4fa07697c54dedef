-- Lists what is wrong with runs of feeds; part of holdfast.violations().
create or replace function ingest.violations()
returns table (invariant text, subject text, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'run_has_facts', 'run ' || r.id, 'it is a run of a feed, but ingest.run_facts has no row of it'
    from holdfast.runs r
   where r.machine = 'ingest.run' and not exists (select from ingest.run_facts f where f.run_id = r.id)
  union all
  select 'facts_have_a_run', 'run ' || f.run_id, 'there is no such run'
    from ingest.run_facts f where not exists (select from holdfast.runs r where r.id = f.run_id)
  union all
  select 'facts_agree_with_the_run', 'run ' || f.run_id, format('it is %s, its facts say %s', r.state, f.state)
    from ingest.run_facts f join holdfast.runs r on r.id = f.run_id
   where r.state <> f.state or r.tenant <> f.tenant
  union all
  select 'workers_are_counted', 'run ' || f.run_id,
         format('%s completed, %s failed of %s, counted %s, %s of %s', f.completed_workers, f.failed_workers,
                f.expected_workers, c.completed, c.failed, c.total)
    from ingest.run_facts f,
         lateral (select count(*) filter (where s.state = 'completed') as completed,
                         count(*) filter (where s.state = 'failed') as failed, count(*) as total
                    from ingest.partitions p join holdfast.steps s on s.id = p.step_id
                   where p.run_id = f.run_id) c
   where (f.completed_workers, f.failed_workers, f.expected_workers) is distinct from (c.completed, c.failed, c.total)
  union all
  select 'partition_agrees_with_its_step', format('run %s %s', p.run_id, p.partition_id),
         format('%s at offset %s, its step is %s at %s', p.status, p.next_offset, s.state, s.cursor ->> 'offset')
    from ingest.partitions p join holdfast.steps s on s.id = p.step_id
   where (s.state = 'completed') <> p.completed
      or (not p.completed and p.next_offset <> coalesce((s.cursor ->> 'offset')::int, 0))
      or (s.state = 'failed') <> (p.status is not distinct from 'failed' and s.state <> 'cancelled')
  union all
  select 'watermark_is_of_a_completed_run', 'feed ' || w.feed, format('run %s, %s', w.last_run_id, w.last_updated_at)
    from ingest.feed_watermarks w
    join ingest.run_facts f on f.run_id = w.last_run_id
   where f.state <> 'completed' or w.last_updated_at < f.watermark_after
  union all
  select 'completed_run_left_no_record', 'run ' || f.run_id, format('%s records are not consolidated', c.rows)
    from ingest.run_facts f join ingest.known_feeds k on k.feed = f.feed,
         lateral (select count(*) as rows from ingest.sightings s
                   where s.feed_id = k.id and s.seen_no = f.no and not s.consolidated
                     and not exists (select from ingest.quarantined q where q.run_id = f.run_id and q.key = s.key)) c
   where f.state = 'completed' and c.rows > 0
  union all
  select 'quarantined_is_counted', 'run ' || f.run_id, format('%s, counted %s', f.quarantined, c.rows)
    from ingest.run_facts f,
         lateral (select count(*) as rows from ingest.quarantined q where q.run_id = f.run_id) c
   where f.quarantined < c.rows
  union all
  select 'record_has_both_rows', format('feed %s', s.feed_id), format('%s of %s payloads', count(*), count(p.key))
    from ingest.sightings s full join ingest.payloads p on p.feed_id = s.feed_id and p.key = s.key
   group by s.feed_id having count(s.key) <> count(p.key)
$$;
