-- Creates the run that a held planning task planned, with its partitions, in one transaction: {"run_type", "since",
-- "until", "watermark", "estimated", "page_size", "partitions": [{"min", "max", "estimated"}, …]}. Call it in the
-- transaction that settles the task. A run without partitions goes straight to its consolidation.
create or replace function ingest.create_run(step_id bigint, lease_id bigint, plan jsonb)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  step holdfast.steps;
  known ingest.known_feeds;
  facts ingest.run_facts;
  start ingest.starts;
  parts constant jsonb := coalesce(create_run.plan -> 'partitions', '[]');
begin
  select s.* into step from holdfast.steps s
   where s.id = create_run.step_id and s.lease_id = create_run.lease_id
     for update;
  select b.* into start from ingest.starts b where b.step_id = step.id;
  if start.run_id is null or not holdfast.matches_any(holdfast.allowed_tenants(), start.tenant) then
    perform holdfast.refuse('RN002', format('step %s does not plan a run under lease %s', create_run.step_id,
                                            create_run.lease_id), 'stop working on it: another worker has it');
  end if;
  known := ingest.feed_to_use(start.feed);
  if (create_run.plan ->> 'watermark')::timestamptz is distinct from (
       select w.last_updated_at from ingest.feed_watermarks w where w.feed = known.feed) then  -- guard: watermark
    perform holdfast.refuse('RN010', format('the watermark of %s has been changed since the plan was made', known.feed),
                            'plan again', start.run_id::text);
  end if;
  insert into ingest.run_facts (run_id, feed, tenant, run_type, expected_workers, watermark_before, started_at,
                                is_backfill, advances, updated_from, updated_to, estimated, trace_id)
  values (start.run_id, known.feed, known.tenant, create_run.plan ->> 'run_type', jsonb_array_length(parts),
          (create_run.plan ->> 'watermark')::timestamptz, start.started_at, start.since is not null,
          start.since is null,
          (create_run.plan ->> 'since')::timestamptz, (create_run.plan ->> 'until')::timestamptz,
          (create_run.plan ->> 'estimated')::bigint, start.trace_id)
  returning * into facts;
  perform holdfast.set_actor('worker', step.lease_owner);
  perform holdfast.make_run(
    facts.run_id, 'ingest.run', known.feed, 'ingest.partition',
    (select coalesce(jsonb_agg(jsonb_build_object(
              'name', w.item ->> 'partitionId', 'kind', format('ingest:%s:page', known.feed),
              'input', ingest.with_trace(jsonb_build_object('item', w.item), facts.trace_id)) order by w.no), '[]')
       from ingest.work_items(facts, known, parts) w),
    jsonb_build_object('feed', known.feed), known.tenant, null);
  insert into ingest.partitions (run_id, partition_id, step_id, tenant, work_item_payload, created_at, updated_at)
  select facts.run_id, w.item ->> 'partitionId', n.step_id, known.tenant, w.item, clock, clock
    from ingest.work_items(facts, known, parts) w
    join holdfast.run_steps n on n.run_id = facts.run_id and n.name = w.item ->> 'partitionId';
  if parts = '[]' then
    perform ingest.trigger_consolidation(facts.run_id);
    perform holdfast.move_runs(array[facts.run_id], 'all_succeeded', clock);
  end if;
  perform holdfast.set_actor();
  return facts.run_id;
end
$$;
grant execute on function ingest.create_run to hf_worker;
