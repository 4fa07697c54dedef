-- Large runs: an admission window, pauses and stops, and the times of a run. docs/design/bulk.md says how they work.

-- What a face says of its machine of runs. Functions of the last release do not name the columns.
alter table holdfast.machines
  add column window_size int,        -- how many steps of a run are due at a time; null: all of them
  add column admits text,            -- the steps to admit, schema.function(run_id uuid, after bigint, most int)
                                     -- returns bigint[]; null: all
  add column counts_admitted text;   -- how many these are, schema.function(run_id uuid) returns int; null: all
-- squawk-ignore constraint-missing-not-valid
alter table holdfast.machines add constraint window_is_positive check (window_size > 0);

alter table holdfast.runs
  add column queued_at timestamptz,  -- its creation if its machine begins open; null: not queued yet
  add column window_size int,        -- its machine's when it was made
  add column to_admit int not null default 0,           -- steps still to be admitted
  add column admitted_until bigint not null default 0,  -- the last step that was admitted
  add column admits text not null default 'untried',    -- which steps are to be admitted
  add column first_left int,         -- after so many more, admission waits for resume_run
  add column left_out int not null default 0,           -- steps that the face does not want admitted
  add column dependent int not null default 0,          -- steps that were added with parents
  add column halt text,              -- first: no more are admitted for now. paused, stopped: none is claimed
  add column halted_at timestamptz,
  add column halted_by text,
  add column halt_reason text;
alter table holdfast.runs
  add constraint known_admits check (admits in ('untried', 'failed', 'chosen')) not valid,
  add constraint known_halt check (halt in ('first', 'paused', 'stopped')) not valid,
  add constraint halt_is_whole check ((halt is null) = (halted_at is null)) not valid,
  add constraint admission_is_counted check (to_admit >= 0 and left_out >= 0 and first_left >= 0) not valid,
  add constraint times_follow_each_other check (
    queued_at <= started_at and started_at <= finished_at and queued_at <= finished_at) not valid;
-- squawk-ignore ban-drop-constraint
alter table holdfast.runs drop constraint moving_is_known;
alter table holdfast.runs add constraint moving_is_known check (
  moving in ('cancelled', 'reopened', 'stopped', 'resumed')) not valid;
-- No machine of the last release begins shut. A run that is over needs no time: none of its columns is read again.
update holdfast.runs r set queued_at = least(r.created_at, r.started_at) where r.finished_at is null;

-- The steps that a retry chose, of a run with a window.
create table holdfast.run_choices (
  run_id uuid not null,
  step_id bigint not null,
  primary key (run_id, step_id)
);

-- Who paused, resumed or stopped which run, when and why: append-only, as the journal is, and numbered as it is.
create table holdfast.run_changes (
  id bigint primary key default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  tenant text not null,
  run_id uuid not null,
  event text not null,
  actor text not null,
  login text,                    -- as in the journal
  reason text,
  constraint known_run_change check (event in ('paused', 'resumed', 'stopped'))
);
create index changes_of_run on holdfast.run_changes (run_id, id);
