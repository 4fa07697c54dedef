-- What happened to runs, in one order: the events that were appended, and every move, as journaled. Rows never change.
create or replace view ops.run_events with (security_invoker = true) as
select e.event_id, e.run_id, e.level, e.message, e.payload, e.created_at
  from ops.event_list e;
grant select, insert, update, delete on ops.run_events to hf_producer, hf_worker, hf_reader, hf_operator;
