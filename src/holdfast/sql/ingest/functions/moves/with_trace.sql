-- Returns an input with the trace of its run as W3C's traceparent, so that log lines and spans of its steps carry it.
create or replace function ingest.with_trace(input jsonb, trace_id text)
returns jsonb
language sql immutable
begin atomic
  select with_trace.input || jsonb_build_object('$trace', jsonb_build_object(
           'traceparent', format('00-%s-%s-01', with_trace.trace_id, right(with_trace.trace_id, 16))));
end;
