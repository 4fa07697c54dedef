-- Returns what the task that plans a run needs to know: the start, the feed's watermark and the clock. `run_id` is null
-- if the run has been created already.
create or replace function ingest.start_to_plan(step_id bigint, lease_id bigint)
returns table (run_id uuid, feed text, run_type text, since timestamptz, until timestamptz, watermark timestamptz,
               clock timestamptz, trace_id text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select case when f.run_id is null then b.run_id end, b.feed, b.run_type, b.since, b.until, w.last_updated_at,
         holdfast.clock(), b.trace_id
    from ingest.starts b
    join holdfast.steps s on s.id = b.step_id and s.lease_id = start_to_plan.lease_id
    left join ingest.feed_watermarks w on w.feed = b.feed
    left join ingest.run_facts f on f.run_id = b.run_id
   where b.step_id = start_to_plan.step_id and holdfast.matches_any(holdfast.allowed_tenants(), b.tenant);
end
$$;
grant execute on function ingest.start_to_plan to hf_worker;
