-- Writes an event of a run.
create or replace function ingest.add_event(
  facts ingest.run_facts, event text, message text default null, body jsonb default '{}',
  severity text default 'info', partition_id text default null)
returns void
language sql
begin atomic
  insert into ingest.event_log (at, tenant, feed, run_id, trace_id, event, severity, partition_id, message, body)
  values (holdfast.clock(), facts.tenant, facts.feed, facts.run_id, facts.trace_id, add_event.event,
          add_event.severity, add_event.partition_id, add_event.message, add_event.body);
end;
