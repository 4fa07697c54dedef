-- Lists the events that `worker` caused in these runs and in the runs of these steps, in order, for its subscribers:
-- moves of a run, ends of its partitions, alerts, and a plan that failed, which has no id. A step that is a partition
-- between two pages has caused none. Omits runs of tenants that the login may not act for, and of a run in `known` the
-- events up to that id: {"<run_id>": id}.
create or replace function ingest.events_by(
  worker text, step_ids bigint[], run_ids uuid[] default '{}', known jsonb default '{}')
returns table (
  id bigint, at timestamptz, event text, run_id uuid, step_id bigint, feed text, run_type text, trace_id text,
  partition_id text, severity text, message text, body jsonb, records bigint, quarantined int, deleted int,
  watermark timestamptz)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan  -- these steps and their runs, whatever the statistics say
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  allowed constant text[] := holdfast.allowed_tenants();
  runs constant uuid[] := events_by.run_ids || array(
    select s.run_id from holdfast.steps s
     where s.id = any (events_by.step_ids) and s.machine in ('ingest.partition', 'ingest.consolidation')
       and s.state <> 'fetching_pages'
     union
    select b.run_id from ingest.starts b where b.step_id = any (events_by.step_ids));
begin
  if runs = '{}' then
    return;
  end if;
  return query
  select e.id, e.at, e.event, e.run_id, p.step_id, e.feed, r.run_type, e.trace_id, e.partition_id, e.severity,
         e.message, e.body, r.records, r.quarantined, r.deleted, r.watermark_after
    from ingest.run_facts r
    join ingest.event_log e on e.run_id = r.run_id
    left join ingest.partitions p on p.run_id = e.run_id and p.partition_id = e.partition_id
   where r.run_id = any (runs) and holdfast.matches_any(allowed, r.tenant)
     and e.id > coalesce((events_by.known ->> r.run_id::text)::bigint, 0)  -- guard: known
     and coalesce(e.body ->> 'worker', e.body ->> 'workerId') = events_by.worker  -- guard: own
   order by e.id;
  return query
  select null::bigint, s.finished_at, 'run.planning_failed', b.run_id, b.step_id, b.feed, b.run_type, b.trace_id, null,
         'warning', holdfast.error_text(s.error), '{}'::jsonb, 0::bigint, 0, 0, null::timestamptz
    from ingest.starts b
    join holdfast.steps s on s.id = b.step_id and s.finished_at is not null and s.error is not null
   where b.step_id = any (events_by.step_ids) and holdfast.matches_any(allowed, b.tenant)
     and not exists (select from ingest.run_facts r where r.run_id = b.run_id);
end
$$;
grant execute on function ingest.events_by to hf_producer, hf_worker, hf_reader, hf_operator;
