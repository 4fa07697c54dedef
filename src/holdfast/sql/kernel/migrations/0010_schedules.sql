-- Schedules: work that the clock starts. docs/design/clock.md says how it works.

-- The functions of each face that the kernel calls, as its entry in FACES names them; the installation fills it. Null:
-- the face has none.
create table holdfast.faces (
  face text primary key,
  starts text,                   -- schema.function(target text, input jsonb, options jsonb, tenant text) returns text[]
  is_open text,                  -- schema.function(ids text[]) returns boolean
  cancels text,                  -- schema.function(ids text[], reason text) returns void
  prunes text                    -- schema.function(step_ids bigint[], run_ids uuid[]) returns void
);

-- The runs that undo, check or retry another one: few, so the index is small.
-- squawk-ignore require-concurrent-index-creation
create index runs_of_run on holdfast.runs (of_run) where of_run is not null;

-- What is to be started when. Exactly one of cron, every and at says when, in nominal times; a tick is due `shift`
-- later.
create table holdfast.schedules (
  id bigint primary key generated always as identity,
  tenant text not null,
  name text not null,
  face text not null references holdfast.faces,
  target text not null,          -- what the face is to start
  input jsonb not null,
  options jsonb not null,        -- the face's own: a task's queue, a flow's version
  cron text,                     -- five fields, in `timezone`
  every interval,
  at timestamptz,                -- once
  timezone text not null,
  starts_at timestamptz,         -- no tick before it
  ends_at timestamptz,           -- no tick after it
  missed text not null,          -- what becomes of ticks that nobody fired in time
  missed_window interval,        -- how old a tick may be that is fired late; null: any age
  overlap text not null,         -- what becomes of a tick while the work of the previous one is not over
  spread interval not null,
  shift interval not null,       -- below `spread`, from the name
  words text,                    -- the cron in words, by the worker that planned it
  version int not null default 1,  -- of the definition: a plan for an older one is refused
  after_at timestamptz not null,   -- ticks up to this nominal time were handled, or were before its definition
  upcoming timestamptz[] not null default '{}',  -- the planned nominal times after it, ascending
  is_planned boolean not null default false,     -- no tick comes after the planned ones
  next_at timestamptz,           -- when the first of them is due
  wake_at timestamptz,           -- when a worker must look at it: to fire, or to plan further; null: never
  last_at timestamptz,           -- the nominal time of the last tick that was handled
  ended_at timestamptz,          -- no tick will follow
  broken text,                   -- why its ticks cannot be computed
  paused_at timestamptz,
  paused_by text,
  pause_reason text,
  defined_at timestamptz not null,
  unique (tenant, name),
  constraint one_rule check (num_nonnulls(cron, every, at) = 1),
  constraint known_missed check (missed in ('skip', 'one', 'all')),
  constraint known_overlap check (overlap in ('allow', 'skip', 'cancel')),
  constraint every_second_at_most check (every >= interval '1 second'),
  constraint shift_is_below_spread check (shift >= '0' and (shift < spread or shift = '0')),
  constraint sleeps_when_it_cannot_fire
    check (wake_at is null or num_nonnulls(ended_at, broken, paused_at) = 0),
  constraint first_tick_is_next
    check (next_at is not distinct from case when ended_at is null and broken is null then upcoming[1] + shift end)
) with (fillfactor = 50);
create index schedules_awake on holdfast.schedules (wake_at) where wake_at is not null;

-- What became of each tick. It is written with what the tick starts, in one transaction. The rows outlive their
-- schedule: a schedule that is removed and made again does not fire a tick twice. Retention removes them.
create table holdfast.ticks (
  tenant text not null,
  name text not null,
  at timestamptz not null,       -- the nominal time; of a run by hand, when it was asked for
  due_at timestamptz not null,
  fired_at timestamptz not null,
  cause text not null,
  outcome text not null,
  face text not null,
  ids text[] not null default '{}',        -- what it started
  cancelled text[] not null default '{}',  -- what it cancelled of the ticks before it
  error jsonb,
  ticks int not null default 1,  -- more for a row that stands for many missed ones, up to until_at
  until_at timestamptz,
  actor text not null,
  primary key (tenant, name, at),
  constraint known_cause check (cause in ('clock', 'run', 'backfill')),
  constraint known_outcome check (outcome in ('started', 'skipped', 'missed', 'failed')),
  constraint started_has_ids check ((outcome = 'started') = (ids <> '{}')),
  constraint failed_has_an_error check ((outcome = 'failed') = (error is not null))
);
create index ticks_started on holdfast.ticks (tenant, name, fired_at) where outcome = 'started';
create index ticks_fired on holdfast.ticks (fired_at);

-- Who changed which schedule, when and how: append-only, as the journal is, and numbered as it is.
create table holdfast.schedule_changes (
  id bigint primary key default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  tenant text not null,
  name text not null,
  event text not null,
  actor_kind text not null,
  actor text not null,
  login text,                    -- as in the journal
  reason text,
  payload jsonb not null default '{}',
  constraint known_schedule_event check (event in (
    'defined', 'forgotten', 'paused', 'resumed', 'run', 'backfilled', 'broken', 'ended'))
);
create index changes_of_schedule on holdfast.schedule_changes (tenant, name, id);
