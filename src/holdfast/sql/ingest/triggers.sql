-- The views are read-only: the error of a write says what to do instead. One UPDATE is the document's.
create or replace trigger takes_no_write instead of insert or update or delete on ingest.run_metadata
  for each row execute function ingest.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ingest.worker_runs
  for each row execute function ingest.refuse_write();
create or replace trigger takes_no_other_write instead of insert or delete on ingest.partition_progress
  for each row execute function ingest.refuse_write();
create or replace trigger takes_offsets instead of update on ingest.partition_progress
  for each row execute function ingest.take_offset();
create or replace trigger takes_no_write instead of insert or update or delete on ingest.feeds
  for each row execute function ingest.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ingest.watermarks
  for each row execute function ingest.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ingest.quarantine
  for each row execute function ingest.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ingest.pricing_rules
  for each row execute function ingest.refuse_write();
create or replace trigger takes_no_write instead of insert or update or delete on ingest.events
  for each row execute function ingest.refuse_write();

create or replace trigger stays before update or delete on ingest.event_log
  for each row execute function ingest.refuse_change();
create or replace trigger stays_whole before truncate on ingest.event_log
  for each statement execute function ingest.refuse_change();
