-- Retention: how long what is over is kept, and what has been removed. docs/design/retention.md says how it works.

-- The rules. `runs`: tasks and whole runs that are over, by tenant, machine, queue and outcome; null stands for any,
-- the tenant '*' for all, and the most specific rule applies. `journal`: months of the journal and the notes. `ticks`:
-- the ticks of schedules. A default applies where no rule was set, however general that one is.
create table holdfast.retention_rules (
  what text not null,
  tenant text not null,
  machine text,
  queue text,                    -- of tasks: a run has none
  outcome text,
  keep interval,                 -- counted from the end; null: forever
  set_at timestamptz not null,
  is_default boolean not null default false,
  unique nulls not distinct (what, tenant, machine, queue, outcome, is_default),
  constraint known_retention check (what in ('runs', 'journal', 'ticks')),
  constraint known_kept_outcome check (outcome in ('succeeded', 'failed', 'cancelled', 'partial', 'undone')),
  constraint keep_is_not_negative check (keep >= '0'),
  constraint only_runs_are_told_apart check (
    what = 'runs' or (tenant = '*' and num_nonnulls(machine, queue, outcome) = 0)),
  constraint journal_is_kept_for_months check (what <> 'journal' or keep >= '1 month')
);
insert into holdfast.retention_rules (what, tenant, outcome, keep, set_at, is_default) values
  ('runs',    '*', 'succeeded', '30 days',  clock_timestamp(), true),
  ('runs',    '*', 'cancelled', '30 days',  clock_timestamp(), true),
  ('runs',    '*', 'undone',    '30 days',  clock_timestamp(), true),
  ('runs',    '*', 'failed',    '90 days',  clock_timestamp(), true),
  ('runs',    '*', 'partial',   '90 days',  clock_timestamp(), true),  -- it has failed steps, which can be retried
  ('journal', '*', null,        '6 months', clock_timestamp(), true),
  ('ticks',   '*', null,        '30 days',  clock_timestamp(), true);

-- Who changed which rule, when and how: append-only, as the journal is, and numbered as it is.
create table holdfast.retention_changes (
  id bigint primary key default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  what text not null,
  tenant text not null,
  machine text,
  queue text,
  outcome text,
  event text not null,
  keep interval,                 -- null: forever, or the rule was removed
  kept interval,                 -- before; null: forever, or there was no rule
  actor text not null,
  login text,                    -- as in the journal
  reason text,
  constraint known_retention_event check (event in ('set', 'removed'))
);

-- Where the sweep is: one row, which the worker that sweeps has locked.
create table holdfast.retention_sweep (
  is_only boolean primary key default true,
  begins_at timestamptz not null,  -- nothing is removed before: an upgrade leaves a day to set rules
  phase text not null default 'steps',
  step_id bigint not null default 0,  -- up to which step it has looked
  run_id uuid not null default '00000000-0000-0000-0000-000000000000',  -- up to which run
  run_left uuid,                 -- a run of many steps that is gone itself; its steps follow in chunks
  next_at timestamptz,           -- when the next pass begins; null: one is under way
  began_at timestamptz,          -- the pass that is under way, or the last one
  ended_at timestamptz,          -- the last pass
  busy interval not null default '0',  -- the time that this pass has taken so far
  steps bigint not null default 0,     -- what this pass has removed, or the last one
  runs bigint not null default 0,
  keys bigint not null default 0,
  ticks bigint not null default 0,
  blocked_at timestamptz,        -- since when a month of the journal could not be dropped, because it is in use
  blocked_month text,
  constraint there_is_one_sweep check (is_only),
  constraint known_sweep_phase check (phase in ('steps', 'runs', 'rest'))
);
insert into holdfast.retention_sweep (begins_at) values (clock_timestamp() + interval '1 day');

-- What each chunk has removed, and by which rule. A row goes with the months of the journal that know the same ids.
create table holdfast.prunings (
  id bigint primary key generated always as identity,
  at timestamptz not null,
  rule text not null,
  span int8range not null,       -- of the ids; of a run, of the time in its id
  step_ids bigint[],
  run_ids uuid[]
);
create index prunings_of_ids on holdfast.prunings using gist (span);
create index prunings_by_age on holdfast.prunings (at);

-- squawk-ignore require-concurrent-index-creation
create index keys_expiring on holdfast.keys (expires_at) where expires_at is not null;

-- Rows are deleted from them in chunks.
alter table holdfast.runs set (autovacuum_vacuum_scale_factor = 0.05);
alter table holdfast.run_steps set (autovacuum_vacuum_scale_factor = 0.05);
alter table holdfast.edges set (autovacuum_vacuum_scale_factor = 0.05);
alter table holdfast.keys set (autovacuum_vacuum_scale_factor = 0.05);
