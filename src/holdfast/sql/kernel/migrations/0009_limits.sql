-- Limits: how many steps are held at once, and how fast steps are claimed. docs/design/limits.md says how it works.

-- The rules. `shop:acme` is one limit; `shop:*` is a family, of which each value is counted by itself. A rule counts
-- the steps of its tenant; with tenant '*' it counts those of all tenants together. A part that is null limits nothing.
create table holdfast.limits (
  name text collate "C" not null,
  tenant text not null,
  concurrency int,               -- steps held at once
  rate numeric,                  -- tokens that come back …
  per interval,                  -- … in this time
  burst numeric,                 -- tokens in a full bucket
  breaker_after int,             -- failures in a row that open the breaker
  breaker_for interval,          -- how long it stays open the first time
  breaker_counts text[],         -- the types of the errors that count; null with no breaker
  paused_until timestamptz,      -- of a family: all of its values. A single limit's pause is in its state
  paused_by text,
  pause_reason text,
  defined_at timestamptz not null,
  primary key (name, tenant),
  constraint concurrency_is_not_negative check (concurrency >= 0),
  constraint bucket_is_whole check (num_nonnulls(rate, per, burst) in (0, 3)),
  constraint bucket_fills check (rate > 0 and rate < 'infinity' and per > '0' and burst > 0 and burst < 'infinity'),
  constraint breaker_is_whole check (num_nonnulls(breaker_after, breaker_for, breaker_counts) in (0, 3)),
  constraint breaker_opens check (breaker_after >= 1 and breaker_for > '0')
);

-- What a limit has now: one row per value that was met, such as `shop:acme`. Upkeep removes those that say no more than
-- a new one would. A claim locks the rows of its steps' limits in the order of their ids.
create table holdfast.limit_states (
  id bigint primary key generated always as identity,
  held int not null default 0,   -- steps under a lease whose `holds` names it
  parked int not null default 0, -- steps that are parked on it
  tokens numeric,                -- in the bucket at filled_at; null: it is full
  filled_at timestamptz,
  bucket_at timestamptz,         -- since when there is a bucket: what was claimed before took nothing from it
  wake_at timestamptz,           -- from when on it may admit a step that is parked on it; null: not by time alone
  paused_until timestamptz,
  failures int not null default 0,  -- in a row
  open_until timestamptz,        -- the breaker is open, or after that time waits for its probe; null: closed
  open_for interval,             -- how long it was opened the last time
  probe_id bigint,               -- the step that was admitted as the probe, while it is held
  name text collate "C" not null,
  tenant text not null,
  paused_by text,
  pause_reason text,
  unique (name, tenant),
  constraint counts_are_not_negative check (held >= 0 and parked >= 0 and failures >= 0)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
create index limit_wakes on holdfast.limit_states (wake_at) where wake_at is not null;

-- Who changed which limit, when and how: append-only, as the journal is, and numbered as it is. A few rows per change
-- by people, and one when a handler's answer pauses a limit or a breaker opens, so there are no partitions.
create table holdfast.limit_changes (
  id bigint primary key default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  tenant text not null,
  name text collate "C" not null,
  event text not null,
  actor_kind text not null,
  actor text not null,
  login text,                    -- as in the journal
  reason text,
  payload jsonb not null default '{}',
  constraint known_limit_event check (event in ('defined', 'forgotten', 'paused', 'resumed', 'opened', 'closed'))
);
create index changes_of_limit on holdfast.limit_changes (name, tenant, id);

-- What a kind's steps get when their starter names nothing else; `{field}` stands for a field of the input. Functions
-- of the last release do not name the columns and leave them as they are.
alter table holdfast.kinds
  add column limits text[],
  add column weight text,
  add column call_weight numeric(20, 6);

-- Null, as they are for a step without limits, they cost nothing.
alter table holdfast.steps
  add column limits text[],      -- the limits that it names, up to three
  add column weight numeric(20, 6),  -- what it takes from their buckets; null: 1
  add column holds bigint[],     -- the states that count it while it has a lease
  add column charge numeric(20, 6),  -- what it takes from each bucket, as its last claim reckoned; null: 1
  add column limited_by bigint;  -- the state that it is parked on, while parked_for is 'limit'

-- A limit's queue. A query names limited_by alone: with parked_for the planner might take the index of all that is
-- parked.
-- squawk-ignore require-concurrent-index-creation
create index steps_limited on holdfast.steps (limited_by, queue, priority desc, parked_due_at, id)
  where limited_by is not null;

-- What happened to a limit's holders in one statement: how many came and went by which event, and which.
create type holdfast.limit_change as (
  limit_id bigint, event text, error_type text, held int, parked int, step_ids bigint[]);
-- What a claim may take under limits, with the states that are to count each step and what it is charged, by its id.
create type holdfast.admission as (
  ids bigint[], holds jsonb, charges jsonb, at timestamptz, refused int, full_ids bigint[], left_ids bigint[],
  ended_ids bigint[], pending bigint[], shared bigint[], tight int);
