-- Who acts, and for whom.

-- The login that acted, where `actor` is a person whom it named; null where the actor acted itself. A login can name
-- anybody, so the one that did is kept. Functions of the last release do not name the column and go on working.
alter table holdfast.journal add column login text;

-- Who paused or resumed which queue, when and why: append-only, as the journal is, and numbered as it is. A few rows
-- per incident, so there are no partitions. A queue is everybody's: every login reads it.
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

-- Two more outcomes. partial: a run that ended with successes and failures. undone: a step or a run that was rolled
-- back; in the run's counts such a step still succeeded.
-- squawk-ignore ban-drop-constraint
alter table holdfast.machine_states drop constraint known_outcome;
-- squawk-ignore constraint-missing-not-valid
alter table holdfast.machine_states add constraint known_outcome check (
  outcome in ('succeeded', 'failed', 'cancelled', 'partial', 'undone'));

-- What a face says of its machines: a function that is called with the rows of the machine that moved, as
-- schema.function(moves holdfast.shared_move[]), and what people call a row ("task", "run", "target"). Until
-- the code is installed, a row is called by its subject. Functions of the last release do not name the columns.
alter table holdfast.machines add column moved text, add column label text;
update holdfast.machines set label = subject;
-- squawk-ignore adding-not-nullable-field
alter table holdfast.machines alter column label set not null;

-- A move that rows of one machine made in one statement. Of steps: `step_ids` of the run `run_id` (null: of none). Of
-- runs: the run alone, and no `step_ids`. A new row comes from the state `new` by the event `created`.
create type holdfast.shared_move as (run_id uuid, from_state text, event text, to_state text, step_ids bigint[]);
