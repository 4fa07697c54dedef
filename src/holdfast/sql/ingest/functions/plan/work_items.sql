-- Returns the WorkItemMessage of each planned partition.
create or replace function ingest.work_items(facts ingest.run_facts, feed ingest.known_feeds, parts jsonb)
returns table (no bigint, item jsonb)
language sql stable
begin atomic
  select p.no, jsonb_build_object(
           'type', 'WORK_ITEM', 'feed', facts.feed, 'runId', facts.run_id, 'traceId', facts.trace_id,
           'partitionId', 'partition-' || p.no - 1, 'min', p.part -> 'min', 'max', p.part -> 'max',
           'estimated', p.part -> 'estimated', 'limit', feed.settings -> 'page_size', 'offset', 0,
           'updatedFrom', facts.updated_from, 'updatedTo', facts.updated_to)
    from jsonb_array_elements(work_items.parts) with ordinality p (part, no);
end;
