-- Starts the task that plans a run, as ingest.start does. The caller has called set_actor.
create or replace function ingest.begin_start(
  feed text, run_type text, since timestamptz, until timestamptz, tenant text)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  known constant ingest.known_feeds := ingest.feed_to_use(begin_start.feed);
  clock constant timestamptz := holdfast.clock();
  run_id constant uuid := holdfast.uuid7();
  trace_id constant text := replace(gen_random_uuid()::text, '-', '');
  is_backfill constant boolean := num_nonnulls(begin_start.since, begin_start.until) > 0;
  step_id bigint;
begin
  if begin_start.tenant <> known.tenant then
    perform holdfast.refuse('RN005', format('feed %s belongs to tenant %s, got %s', known.feed, known.tenant,
                                            begin_start.tenant), 'leave the tenant out', 'tenant');
  end if;
  if begin_start.run_type not in ('full', 'incremental') or (is_backfill and begin_start.run_type = 'full') then
    perform holdfast.refuse('RN005', format('run_type must be full or incremental, got %s%s', begin_start.run_type,
                                            case when is_backfill then ' for a backfill' else '' end),
                            'leave it out: the first run is full, later ones are incremental', 'run_type');
  end if;
  if is_backfill and (begin_start.since < begin_start.until and begin_start.until <= clock) is not true then
    perform holdfast.refuse('RN005', format('a backfill needs since before until, and until not after now, got %s, %s',
                                            begin_start.since, begin_start.until),
                            'use an earlier since, or an until that has passed', 'until');
  end if;
  perform ingest.refuse_if_active(known.feed);
  step_id := holdfast.start_step(
    'work.task', format('ingest:%s:plan', known.feed),
    ingest.with_trace(jsonb_build_object('start', run_id), trace_id),
    queue => known.settings ->> 'queue', unique_key => format('ingest:%s', known.feed), tenant => known.tenant);
  insert into ingest.starts (run_id, step_id, feed, tenant, run_type, since, until, trace_id, started_at)
  values (run_id, step_id, known.feed, known.tenant,
          case when is_backfill then 'incremental' else begin_start.run_type end, begin_start.since, begin_start.until,
          trace_id, clock);
  return run_id;
end
$$;
