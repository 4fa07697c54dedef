-- Rules: bulk changes that are previewed, applied, stopped and retried. docs/design/rules.md says how they fit the
-- kernel.
create schema if not exists rules;
comment on schema rules is 'Holdfast: bulk changes that are previewed, applied and explained';

-- Rules as they were defined or previewed. A change is a new version; no version ever changes.
create table rules.rule_versions (
  tenant text not null,
  rule_id text not null,         -- its name
  version int not null,
  definition jsonb not null,
  is_draft boolean not null,     -- a preview froze it; nobody defined it
  defined_at timestamptz not null,
  defined_by text not null,
  primary key (tenant, rule_id, version),
  constraint versions_begin_at_one check (version >= 1)
);

-- Channels as workers register them ('*': for all tenants). A channel's targets are steps of the kind and the queue
-- rules:<channel>, under the limit of the same name.
create table rules.known_channels (
  tenant text not null,
  channel text not null,
  kind text not null,            -- what it writes to: table, http, …
  about jsonb not null default '{}',  -- what people may see of it, without secrets
  batch int not null default 1,
  request_timeout interval not null default '10 seconds',
  target_timeout interval not null default '60 seconds',
  defined_at timestamptz not null,
  defined_by text not null,
  primary key (tenant, channel),
  constraint batch_is_positive check (batch between 1 and 10000),
  constraint timeouts_are_positive check (request_timeout > '0' and target_timeout >= request_timeout)
);

-- One row per tenant and channel in use. Whoever opens a run locks it while looking for items that are in another one.
create table rules.channel_uses (
  tenant text not null,
  channel text not null,
  primary key (tenant, channel)
);

-- One row per run; holdfast.runs has its state, its times and its counts.
create table rules.run_facts (
  run_id uuid primary key,
  tenant text not null,
  project_id text,
  rule_id text not null,
  rule_version int not null,
  channel text not null,
  source text not null,
  metadata jsonb not null,
  expires_at timestamptz not null,
  includes_others boolean not null default true,  -- whether targets that rules.exceptions does not name are included
  included int not null,         -- how many targets are
  selection jsonb,               -- what apply was called with
  is_open boolean not null default false,         -- QUEUED or APPLYING
  reason text,                   -- why it ended as it did, where its targets do not say
  error jsonb,                   -- of the first target that failed
  constraint included_is_not_negative check (included >= 0)
);
create index runs_open on rules.run_facts (tenant, channel) where is_open;
create index runs_by_expiry on rules.run_facts (expires_at) where selection is null;

-- What a run does: written with its preview and never changed.
create table rules.plans (
  run_id uuid primary key,
  tenant text not null,
  plan jsonb not null,           -- rule, version, counts, sums and largest moves
  plan_hash text not null,       -- SHA-256 of the plan and of every target, as rules.plan_digest computes it
  targets int not null,
  unchanged bigint not null,
  refused bigint not null,
  created_at timestamptz not null,
  constraint hash_is_sha256 check (plan_hash ~ '^[0-9a-f]{64}$'),
  constraint plan_counts_are_not_negative check (targets >= 0 and unchanged >= 0 and refused >= 0)
);

-- The values of each target, in minor units. Written once, so that claims and settles do not copy them.
create table rules.target_values (
  step_id bigint primary key,
  price_before bigint not null,
  price_after bigint not null,
  compare_at_before bigint,
  compare_at_after bigint,
  run_id uuid not null,
  writes_price boolean not null,
  writes_compare_at boolean not null,
  currency text not null,
  item_id text collate "C" not null,  -- by bytes: the hash of the plan takes targets in this order
  constraint currency_has_three_letters check (currency ~ '^[A-Z]{3}$'),
  constraint after_is_not_negative check (price_after >= 0 and compare_at_after >= 0),
  constraint something_is_written check (
    (writes_price and price_after <> price_before)
    or (writes_compare_at and compare_at_after is distinct from compare_at_before)),
  constraint kept_is_unchanged check (
    (writes_price or price_after = price_before)
    and (writes_compare_at or compare_at_after is not distinct from compare_at_before))
);
create unique index target_items on rules.target_values (run_id, item_id);

-- Items that the rule selected and a guardrail or a check refused.
create table rules.refused_items (
  id bigint primary key generated always as identity,
  run_id uuid not null,
  item_id text,
  reason text not null,          -- a word, such as below_minimum
  message text not null,
  currency text,
  price_before bigint,
  price_after bigint
);
create index refusals_of_run on rules.refused_items (run_id, id);

-- Targets that differ from their run's includes_others.
create table rules.exceptions (
  run_id uuid not null,
  step_id bigint not null,
  primary key (run_id, step_id)
);

-- Targets that were retried by hand, and how many tries they had used up before: the kernel counts anew then.
create table rules.target_marks (
  step_id bigint primary key,
  tries_before int not null,
  constraint tries_are_counted check (tries_before >= 0)
);

-- The ledger: one row per target that was applied. Append-only; it outlives runs.
create table rules.ledger (
  id bigint primary key default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  tenant text not null,
  channel text not null,
  item_id text collate "C" not null,
  currency text not null,
  price_before bigint not null,
  price_after bigint not null,
  compare_at_before bigint,
  compare_at_after bigint,
  source text not null,
  effect text not null,
  rule_id text not null,
  rule_version int not null,
  run_id uuid not null,
  step_id bigint not null,
  constraint known_effect check (effect in ('written', 'found'))
);
create unique index ledger_has_a_target_once on rules.ledger (step_id);
create index ledger_of_item on rules.ledger (tenant, channel, item_id, id);
create index ledger_by_age on rules.ledger (at);

-- Events that nothing in the journal says: rules.write_event stores them, each key once per tenant.
create table rules.stored_events (
  id bigint primary key default nextval('holdfast.stream_ids'),
  at timestamptz not null,
  event_key text not null,
  tenant text not null,
  event_type text not null,
  payload jsonb not null default '{}',
  run_id uuid,
  correlation_id text,
  written_by text not null
);
create unique index event_keys on rules.stored_events (event_key, tenant);
create index events_of_run on rules.stored_events (run_id, id) where run_id is not null;
create index events_by_age on rules.stored_events (at);

-- Two more functions that a face may name. Code of the last release does not name the columns.
alter table holdfast.faces
  add column ages text,          -- schema.function(batch int) returns int: removes old rows of the face's own
  add column unwanted text;      -- schema.function(most int) returns uuid[]: runs that never began and never will

-- A step never has fewer than no failures.
-- squawk-ignore constraint-missing-not-valid
alter table holdfast.steps add constraint failures_are_counted check (failures >= 0) not valid;

-- Rule runs are kept for 90 days after their end, whatever it was.
insert into holdfast.retention_rules (what, tenant, machine, keep, set_at, is_default)
values ('runs', '*', 'rules.run', '90 days', clock_timestamp(), true);
