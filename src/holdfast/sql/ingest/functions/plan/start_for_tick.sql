-- Starts the run of a schedule's tick. A tick while a run of the feed is active is refused, and recorded with that
-- reason. The caller has called set_actor.
create or replace function ingest.start_for_tick(target text, input jsonb, options jsonb, tenant text)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse_options('ingest', start_for_tick.options, '{}');
  return array[ingest.begin_start(start_for_tick.target, start_for_tick.input ->> 'run_type', null, null,
                                  start_for_tick.tenant)::text];
end
$$;
