-- Starts a run of a feed and returns its id. Its task counts the source first; until then the run is `planning`.
-- `run_type` is full or incremental; null: full the first time, then incremental. With `since` and `until` it is a
-- backfill: an incremental run over that window that moves no watermark. A second start of an active feed is refused.
create or replace function ingest.start(
  feed text, run_type text default null, since timestamptz default null, until timestamptz default null,
  tenant text default null)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run_id uuid;
begin
  perform holdfast.set_actor('api', session_user::text);
  run_id := ingest.begin_start(start.feed, start.run_type, start.since, start.until, start.tenant);
  perform holdfast.set_actor();
  return run_id;
end
$$;
grant execute on function ingest.start to hf_producer, hf_worker, hf_operator;
