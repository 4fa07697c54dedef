-- Adds the step that consolidates a run: the CONSOLIDATE message. The caller has called set_actor, and moves the run.
create or replace function ingest.trigger_consolidation(run_id uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  facts ingest.run_facts;
  message jsonb;
begin
  update ingest.run_facts r set rounds = r.rounds + 1
   where r.run_id = trigger_consolidation.run_id returning r.* into facts;
  message := jsonb_build_object('type', 'CONSOLIDATE', 'runId', facts.run_id, 'traceId', facts.trace_id)
             || case when facts.forced then '{"force": true}' else '{}'::jsonb end;
  perform holdfast.add_steps(
    facts.run_id, 'ingest.consolidation', jsonb_build_array(jsonb_build_object(
      'name', ingest.consolidation_name(facts.rounds), 'kind', format('ingest:%s:consolidate', facts.feed),
      'input', ingest.with_trace(jsonb_build_object('message', message), facts.trace_id))));
  perform ingest.add_event(facts, 'CONSOLIDATE', null, message);
end
$$;
