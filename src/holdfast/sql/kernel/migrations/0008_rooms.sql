-- Who acts, and for whom.

-- The login that acted, where `actor` is a person whom it named; null where the actor acted itself. A login can name
-- anybody, so the one that did is kept. Functions of the last release do not name the column and go on working.
alter table holdfast.journal add column login text;

-- Who paused or resumed which queue, when and why: append-only, as the journal is, and numbered as it is. A few rows per
-- incident, so there are no partitions. A queue is everybody's: every login reads it.
create table holdfast.queue_pauses (
  id bigint primary key default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  queue text not null,
  event text not null,
  actor text not null,
  login text,                    -- as in the journal
  reason text,
  constraint known_pause_event check (event in ('paused', 'resumed'))
);
create index pauses_of_queue on holdfast.queue_pauses (queue, id);

-- Two more outcomes. partial: a run that ended with successes and failures. undone: a step or a run that was rolled back;
-- in the run's counts such a step still succeeded.
-- squawk-ignore ban-drop-constraint
alter table holdfast.machine_states drop constraint known_outcome;
-- squawk-ignore constraint-missing-not-valid
alter table holdfast.machine_states add constraint known_outcome check (
  outcome in ('succeeded', 'failed', 'cancelled', 'partial', 'undone'));
