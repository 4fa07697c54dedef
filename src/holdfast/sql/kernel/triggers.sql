-- One statement-level trigger for UPDATE and one for INSERT on each stateful table; journal, notes, pauses
-- and changes of runs, limits, schedules and retention are append-only.
create or replace trigger journaled after update on holdfast.steps
  referencing old table as o new table as n for each statement execute function holdfast.journal_step_moves();
create or replace trigger begins after insert on holdfast.steps
  referencing new table as n for each statement execute function holdfast.check_new_steps();
create or replace trigger journaled after update on holdfast.runs
  referencing old table as o new table as n for each statement execute function holdfast.journal_run_moves();
create or replace trigger begins after insert on holdfast.runs
  referencing new table as n for each statement execute function holdfast.journal_new_runs();
create or replace trigger keeps_its_id before update of id on holdfast.steps
  for each statement execute function holdfast.refuse_renumbering();
create or replace trigger keeps_its_id before update of id on holdfast.runs
  for each statement execute function holdfast.refuse_renumbering();
create or replace trigger acyclic after insert on holdfast.edges
  referencing new table as n for each statement execute function holdfast.check_new_edges();

-- Partitions inherit the row triggers of their table; make_partitions adds a truncate trigger to each.
create or replace trigger stays before update or delete on holdfast.journal
  for each row execute function holdfast.refuse_change();
create or replace trigger stays before update or delete on holdfast.notes
  for each row execute function holdfast.refuse_change();
create or replace trigger stays_whole before truncate on holdfast.journal
  for each statement execute function holdfast.refuse_change();
create or replace trigger stays_whole before truncate on holdfast.notes
  for each statement execute function holdfast.refuse_change();
create or replace trigger stays before update or delete on holdfast.queue_pauses
  for each row execute function holdfast.refuse_change();
create or replace trigger stays_whole before truncate on holdfast.queue_pauses
  for each statement execute function holdfast.refuse_change();
create or replace trigger stays before update or delete on holdfast.limit_changes
  for each row execute function holdfast.refuse_change();
create or replace trigger stays_whole before truncate on holdfast.limit_changes
  for each statement execute function holdfast.refuse_change();
create or replace trigger stays before update or delete on holdfast.schedule_changes
  for each row execute function holdfast.refuse_change();
create or replace trigger stays_whole before truncate on holdfast.schedule_changes
  for each statement execute function holdfast.refuse_change();
create or replace trigger stays before update or delete on holdfast.retention_changes
  for each row execute function holdfast.refuse_change();
create or replace trigger stays_whole before truncate on holdfast.retention_changes
  for each statement execute function holdfast.refuse_change();
create or replace trigger stays before update or delete on holdfast.run_changes
  for each row execute function holdfast.refuse_change();
create or replace trigger stays_whole before truncate on holdfast.run_changes
  for each statement execute function holdfast.refuse_change();
