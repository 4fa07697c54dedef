-- Machines, runs, steps and what stands around them. Journal and notes follow in 0002, tenancy in 0003.
create schema if not exists holdfast;
comment on schema holdfast is 'Holdfast: the kernel';
alter default privileges for role hf_owner revoke execute on functions from public;

create table holdfast.migrations (
  number int primary key,
  name text not null,
  applied_at timestamptz not null default clock_timestamp()
);

-- What is installed beside the migrations: a digest of functions, views and machines.
create table holdfast.installed (
  part text primary key,
  digest text not null,
  at timestamptz not null default clock_timestamp()
);

create table holdfast.policies (
  policy text primary key,
  tries int,                              -- executions before giving up; null: never
  waits interval[] not null default '{}', -- the first waits, one by one
  base interval not null default '0',     -- beyond them, and law 'exponential': base, base × growth, base × growth², …
  growth numeric not null default 2,      -- law 'power': n ^ growth whole seconds after the nth failure
  law text not null default 'exponential',
  longest interval,                       -- the cap, before jitter
  jitter numeric not null default 0,      -- 0.2: a fifth up or down
  jitter_in_seconds boolean not null default false,  -- whole waits stay whole, and at least one second
  longest_retry_after interval not null default '1 hour',
  constraint tries_at_least_one check (tries >= 1),
  constraint known_law check (law in ('exponential', 'power')),
  constraint jitter_is_a_share check (jitter between 0 and 1),
  constraint waits_are_not_negative check (base >= '0' and growth >= 0 and '0' <= all (waits))
);

create table holdfast.machines (
  machine text primary key,
  subject text not null,
  policy text references holdfast.policies,  -- of a step that names none
  closing text,                              -- a face's own rule, schema.function(run uuid, event text) returns text
  constraint known_subject check (subject in ('run', 'step')),
  constraint steps_have_a_policy check (subject = 'run' or policy is not null)
);

create table holdfast.machine_states (
  machine text not null references holdfast.machines,
  state text not null,
  phase text not null,
  outcome text,
  is_initial boolean not null default false,
  primary key (machine, state),
  -- shut: not let in yet. open: waiting to be claimed. held: under a lease (a run: under way). over: finished.
  -- open_or_over: failed, and whether for good is told by finished_at.
  constraint known_phase check (phase in ('shut', 'open', 'held', 'over', 'open_or_over')),
  constraint known_outcome check (outcome in ('succeeded', 'failed', 'cancelled')),
  constraint over_has_an_outcome check ((phase in ('over', 'open_or_over')) = (outcome is not null)),
  constraint begins_open check (not is_initial or phase in ('shut', 'open'))
);

create table holdfast.machine_moves (
  machine text not null,
  from_state text not null,
  event text not null,
  to_state text not null,
  actors text[] not null,
  primary key (machine, from_state, event),
  foreign key (machine, from_state) references holdfast.machine_states (machine, state),
  foreign key (machine, to_state) references holdfast.machine_states (machine, state),
  constraint known_event check (event in (
    'queued', 'claimed', 'started', 'succeeded', 'retried', 'failed', 'snoozed', 'released', 'continued', 'expired',
    'reopened', 'resolved', 'cancelled', 'rolled_back', 'all_succeeded', 'some_failed', 'none_succeeded', 'blocked', 'stopped')),
  constraint known_actors check (actors <@ array['worker', 'api', 'user', 'scheduler', 'system'] and actors <> '{}')
);

create table holdfast.kinds (
  kind text primary key,
  policy text references holdfast.policies,
  lease interval,
  timeout interval,
  queue text,
  constraint lease_is_positive check (lease > '0'),
  constraint timeout_is_positive check (timeout > '0')
);

create table holdfast.queues (
  queue text primary key,
  top_priority smallint not null default 0,  -- the highest ever started: a claim looks no higher
  paused_at timestamptz,
  paused_by text,
  pause_reason text,
  created_at timestamptz not null
);

create table holdfast.workers (
  worker text not null,
  queue text not null,
  kinds text[],                  -- null: any
  tenants text[],                -- null: any
  is_asleep boolean not null default false,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  primary key (worker, queue)
);

create table holdfast.runs (
  id uuid primary key,
  machine text not null,
  name text not null,
  state text not null,
  last_event text,
  moving text,                   -- cancelled or reopened: the event that its steps are still being taken through
  moved_until bigint not null default 0,  -- up to which step they have been taken
  tenant text not null default 'default',
  of_run uuid,                   -- the run that this one undoes or checks
  total int not null default 0,
  live int not null default 0,   -- due, parked, backing off or held
  succeeded int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  input jsonb not null default '{}',
  constraint counts_add_up check (
    live >= 0 and succeeded >= 0 and failed >= 0 and cancelled >= 0 and live + succeeded + failed + cancelled <= total),
  constraint moving_is_known check (moving in ('cancelled', 'reopened'))
) with (fillfactor = 50);
create index runs_moving on holdfast.runs (id) where moving is not null;

create sequence holdfast.step_ids;
create sequence holdfast.lease_ids;

-- The hot table. First the columns of its indexes, which each update compares, then what the journal copies: a column is
-- found by walking over those before it. What is null costs nothing.
create table holdfast.steps (
  id bigint primary key default nextval('holdfast.step_ids'),
  due_at timestamptz,
  lease_until timestamptz,
  finished_at timestamptz,
  priority smallint not null default 0,
  queue text not null default 'default',
  last_event text,
  tenant text not null default 'default',
  kind text not null,
  unique_key text,
  parked_for text,               -- handler: nobody serves its kind. move: its machine lacks a move
  lease_id bigint,
  run_id uuid,
  attempt int not null default 0,
  machine text not null,
  state text not null,
  lease_owner text,
  error jsonb,
  created_at timestamptz not null,
  claimed_at timestamptz,
  parked_due_at timestamptz,     -- the due time it had when it was parked
  failures int not null default 0,
  waits int not null default 0,
  policy text,                   -- null: the machine's
  input jsonb not null default '{}',
  cursor jsonb,
  result jsonb,
  constraint lease_is_whole check (
    (lease_id is null) = (lease_until is null) and (lease_id is null) = (lease_owner is null)),
  constraint due_in_a_year_of_four_digits check (due_at between '1900-01-01' and '9999-01-01'),
  constraint due_only_when_free check (due_at is null or (lease_id is null and finished_at is null and waits = 0)),
  constraint finished_holds_no_lease check (finished_at is null or lease_id is null),
  constraint parked_only_when_free check (
    parked_due_at is null or (due_at is null and lease_id is null and finished_at is null and waits = 0)),
  constraint parked_keeps_its_due_time check (parked_for is distinct from 'handler' or parked_due_at is not null),
  constraint priority_is_0_to_9 check (priority between 0 and 9),
  constraint input_is_small check (pg_column_size(input) <= 1048576),
  constraint waits_are_counted check (waits >= 0)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

create index steps_due on holdfast.steps (queue, priority, due_at, id) where due_at is not null;
create index steps_held on holdfast.steps (lease_until) where lease_until is not null;
create unique index steps_open_key on holdfast.steps (tenant, unique_key)
  where unique_key is not null and finished_at is null;
-- The dead letter, and a few that were finished by hand: what failed for good is found without reading what did not.
create index steps_dead on holdfast.steps (id)
  where finished_at is not null and last_event not in ('succeeded', 'cancelled', 'resolved', 'rolled_back');
create index steps_parked on holdfast.steps (queue, parked_for, kind, tenant) where parked_for is not null;

-- Which steps a run has, and what they are called in it. Written once: an index on steps.run_id would be written again with
-- each claim and each settle (a tenth of their time).
create table holdfast.run_steps (
  run_id uuid not null,
  step_id bigint not null,
  name text,
  primary key (run_id, step_id)
);
create unique index run_step_names on holdfast.run_steps (run_id, name) where name is not null;

-- Step `next_id` waits for step `step_id`.
create table holdfast.edges (
  step_id bigint not null,
  next_id bigint not null,
  primary key (step_id, next_id),
  constraint waits_for_another check (step_id <> next_id)
);
create index edges_back on holdfast.edges (next_id, step_id);

-- Idempotency keys: they outlive what they point to.
create table holdfast.keys (
  tenant text not null,
  key text not null,
  id text not null,
  input_hash bytea not null,
  expires_at timestamptz,        -- null: never
  primary key (tenant, key)
);

create type holdfast.claimed_step as (
  step_id bigint, run_id uuid, kind text, input jsonb, attempt int, lease_id bigint, lease_until timestamptz, cursor jsonb);
create type holdfast.settled_step as (step_id bigint, event text, state text);
create type holdfast.due_position as (due_at timestamptz, id bigint);
create type holdfast.pick as (ids bigint[], run_ids uuid[]);
create type holdfast.step_move as (
  step_id bigint, lease_id bigint, event text, due_at timestamptz, result jsonb, error jsonb, cursor jsonb);
create type holdfast.run_delta as (
  run_id uuid, total int, live int, succeeded int, failed int, cancelled int);
