-- The journal (every move) and the notes (messages on a step): append-only, partitioned by month of insertion, numbered
-- from one sequence so that together they have one order.
create sequence holdfast.stream_ids;

create table holdfast.journal (
  id bigint not null default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  tenant text not null,
  machine text not null,
  from_state text not null,
  event text not null,
  to_state text not null,
  actor_kind text not null,
  actor text not null,
  step_id bigint,
  run_id uuid,
  attempt int,
  lease_id bigint,
  reason text,
  error jsonb
) partition by range (at);
-- One entry a row: a step's story by its step, a run's own by its run; a run's steps are found through run_steps.
create index journal_of_step on holdfast.journal (step_id, id) where step_id is not null;
create index journal_of_run on holdfast.journal (run_id, id) where step_id is null;

create table holdfast.notes (
  id bigint not null default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  tenant text not null,
  step_id bigint not null,
  run_id uuid,
  attempt int not null,
  lease_id bigint,
  level text not null,
  message text not null,
  payload jsonb not null default '{}',
  constraint known_level check (level in ('debug', 'info', 'warn', 'error'))
) partition by range (at);
create index notes_of_step on holdfast.notes (step_id, id);

-- A note with a key is written once. Not among holdfast.keys: those are the starters'.
create table holdfast.note_keys (
  step_id bigint not null,
  key text not null,
  note_id bigint not null,
  expires_at timestamptz not null,
  primary key (step_id, key)
);
