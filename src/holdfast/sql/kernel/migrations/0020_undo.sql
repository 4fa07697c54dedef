-- Rollback, reconciliation and figures of rules. docs/design/rules.md says how they fit the kernel.

-- A rollback is a run that names the run it undoes. Code of the last release does not name the columns.
alter table rules.run_facts
  add column undoes uuid,                              -- the run that this one rolls back
  add column rolled_back int not null default 0,       -- how many targets are ROLLED_BACK
  add column opened_at timestamptz,                    -- when it was queued or retried last
  add column is_settling boolean not null default false;  -- it is open only to read what unknown outcomes became
-- Built at once: the face is as new as the column, so the table is small.
-- squawk-ignore require-concurrent-index-creation
create index rollbacks_of_run on rules.run_facts (undoes) where undoes is not null;

alter table rules.known_channels
  add column settles_within interval not null default '0',  -- how long a price may take until the channel shows it
  add column corrects boolean not null default false;       -- whether passes plan a correction of what they find

-- Passes of reconciliation, numbered per run. A pass is a run of its own, which has its state and its times.
create table rules.passes (
  run_id uuid not null,          -- the run that it checks
  no int not null,
  pass_id uuid not null,         -- its own run
  tenant text not null,
  channel text not null,
  pass text not null,
  due_at timestamptz not null,
  corrects boolean not null,
  correction uuid,               -- the run that corrects what it found
  is_over boolean not null default false,
  primary key (run_id, no),
  constraint known_pass check (pass in ('immediate', 'delayed', 'daily', 'manual')),
  constraint passes_begin_at_one check (no >= 1)
);
create unique index pass_has_a_run on rules.passes (pass_id);
create index passes_to_come on rules.passes (due_at) where not is_over;

-- One row per step of a pass, with how far it came and what it counted.
create table rules.pass_parts (
  step_id bigint primary key,
  pass_id uuid not null,
  run_id uuid not null,
  after bigint not null,         -- the last target that was checked
  last bigint not null,          -- the last target to check
  checked int not null default 0,
  mismatches int not null default 0,
  superseded int not null default 0,
  unverifiable int not null default 0,
  unknown int not null default 0,
  constraint counts_are_not_negative check (
    checked >= 0 and mismatches >= 0 and superseded >= 0 and unverifiable >= 0 and unknown >= 0)
);
create index parts_of_pass on rules.pass_parts (pass_id);

-- What a pass found of a target: a price that is not ours, one that could not be read, or what became of an unknown
-- outcome. Amounts are in minor units.
create table rules.findings (
  pass_id uuid not null,
  step_id bigint not null,
  run_id uuid not null,
  finding text not null,
  currency text not null,
  expected bigint not null,
  expected_compare_at bigint,
  actual bigint,
  actual_compare_at bigint,
  actual_currency text,
  difference bigint,
  message text,
  at timestamptz not null,
  primary key (pass_id, step_id),
  constraint known_finding check (finding in ('mismatch', 'unverifiable', 'unknown'))
);
create index findings_of_run on rules.findings (run_id, step_id);

-- What is counted as work happens, one row per tenant, channel and connection that counted: so nobody waits for
-- anybody. Retention adds the rows up in slot 0.
create table rules.figures (
  tenant text not null,
  channel text not null,
  slot int not null,                        -- the process of the connection
  applies bigint not null default 0,        -- runs that were applied
  ended bigint not null default 0,          -- runs that ended
  duration_ms numeric not null default 0,   -- of them, in all
  durations jsonb not null default '{}',    -- how many of them took so long, by rules.duration_bucket
  success_rate numeric,                     -- of the run that ended last, in percent
  rated_at timestamptz,                     -- when that was
  retries bigint not null default 0,
  rate_limits bigint not null default 0,
  primary key (tenant, channel, slot),
  constraint figures_are_not_negative check (
    applies >= 0 and ended >= 0 and duration_ms >= 0 and retries >= 0 and rate_limits >= 0)
) with (fillfactor = 50);

insert into holdfast.retention_rules (what, tenant, machine, keep, set_at, is_default)
values ('runs', '*', 'rules.reconcile', '90 days', clock_timestamp(), true);
