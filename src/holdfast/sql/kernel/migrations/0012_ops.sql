-- Ops: the facts of a run, and what belongs to it. docs/design/ops.md says how it fits the kernel.
create schema if not exists ops;
comment on schema ops is 'Holdfast: runs that people and programs queue, watch and cancel';

-- Projects and their environments: defined, or registered by their first run.
create table ops.known_projects (
  tenant text not null,
  project_id text not null,
  repository text,               -- owner/name, as a webhook names it
  created_at timestamptz not null,
  created_by text not null,
  primary key (tenant, project_id)
);
create unique index projects_by_repository on ops.known_projects (tenant, lower(repository))
  where repository is not null;

create table ops.known_environments (
  env_id text primary key,
  tenant text not null,
  project_id text not null,
  name text not null,
  type text,
  kind text not null default 'deploy',           -- of the runs that a push queues
  branch_pattern text,                           -- which pushes queue a run; null: none
  on_push text not null default 'queue',         -- what a new push does to older runs of the same ref
  needs_approval boolean not null default false,
  concurrency int,                               -- runs at once, by the limit env:<id>; null: any number
  queue_ttl interval,                            -- how long a run may wait to be claimed; null: for ever
  created_at timestamptz not null,
  created_by text not null,
  unique (tenant, project_id, name),
  constraint known_type check (type in ('dev', 'staging', 'prod')),
  constraint known_push check (on_push in ('queue', 'cancel_queued', 'cancel_all')),
  constraint concurrency_is_positive check (concurrency > 0),
  constraint ttl_is_positive check (queue_ttl > '0')
);

-- Whether a tenant ('*': all) refuses projects and environments that nobody defined.
create table ops.settings (
  tenant text primary key,
  strict_projects boolean not null default false
);

-- One row per run. The kernel's step decides; ops.record_moves copies here what the views ask for, in the same
-- transaction, so that queries by status and by day need no index on the steps of all faces.
create table ops.run_facts (
  run_id text primary key,
  step_id bigint unique,         -- null only while queue_run reserves the idempotency key
  status text not null default 'queued',
  queued_at timestamptz not null,
  started_at timestamptz,        -- when it was claimed
  running_at timestamptz,        -- when its worker first reported
  finished_at timestamptz,
  updated_at timestamptz not null,
  expires_at timestamptz,        -- it is cancelled if nobody has claimed it by then
  lease interval,                -- as it was claimed
  tenant text not null,
  kind text not null,
  project_id text,
  env_id text,
  env text,
  git_sha text,
  git_ref text,
  claimed_by text,
  queued_by text,
  retry_of text,
  rollback_of text,
  idempotency_key text,
  metadata jsonb not null default '{}',
  constraint known_status check (status in ('queued', 'claimed', 'running', 'success', 'failed', 'cancelled')),
  constraint queued_is_unclaimed check (status <> 'queued' or num_nonnulls(claimed_by, started_at, finished_at) = 0),
  constraint claimed_has_a_worker check (
    (claimed_by is null) = (started_at is null) and (claimed_by is not null or status in ('queued', 'cancelled'))),
  constraint finished_is_over check ((finished_at is null) = (status in ('queued', 'claimed', 'running'))),
  constraint times_in_order check (
    queued_at <= started_at and started_at <= running_at and coalesce(started_at, queued_at) <= finished_at)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create unique index run_keys on ops.run_facts (tenant, idempotency_key) where idempotency_key is not null;
create index runs_by_status on ops.run_facts (status, queued_at);
create index runs_by_day on ops.run_facts (queued_at);
-- Written so that a query cannot take the index by status instead, which has all that is queued.
create index runs_to_expire on ops.run_facts (expires_at) where status || '' = 'queued' and expires_at is not null;
-- What a rollback goes to.
create index runs_that_succeeded on ops.run_facts (env_id, step_id) where status = 'success';
create index runs_that_retry on ops.run_facts (retry_of) where retry_of is not null;
create index runs_that_roll_back on ops.run_facts (rollback_of) where rollback_of is not null;

create table ops.run_artifacts (
  artifact_id text primary key,
  step_id bigint not null,
  tenant text not null,
  type text not null,
  url text not null,
  digest text,
  size_bytes bigint,
  metadata jsonb not null default '{}',
  created_at timestamptz not null,
  constraint size_is_not_negative check (size_bytes >= 0)
);
-- By digest of the address: it may be longer than an index entry can be.
create unique index artifacts_of_run on ops.run_artifacts (step_id, type, md5(url));

create table ops.run_approvals (
  step_id bigint primary key,
  tenant text not null,
  requested_by text not null,
  requested_at timestamptz not null,
  expires_at timestamptz not null,
  decision text,                 -- null: not decided yet
  decided_by text,
  decided_at timestamptz,
  login text,                    -- that decided, where decided_by is a person whom it named
  reason text,
  constraint known_decision check (decision in ('approved', 'rejected', 'expired', 'cancelled')),
  constraint decision_is_whole check ((decision is null) = (decided_at is null))
);
create index approvals_to_expire on ops.run_approvals (expires_at) where decision is null;

-- What webhooks delivered, and what became of it. The runs of a delivery are found by their idempotency keys.
create table ops.deliveries (
  tenant text not null,
  source text not null,          -- github, gitea
  delivery text not null,        -- as the sender numbers it
  event text not null,
  repository text,
  git_ref text,
  git_sha text,
  outcome text not null,         -- queued, or why nothing was
  run_ids text[] not null default '{}',
  received_at timestamptz not null,
  primary key (tenant, source, delivery)
);
create index deliveries_by_day on ops.deliveries (received_at);

-- Failed steps whose machine has no `resolved` move, and which a person has dealt with: the mark ends the dead letter.
create table holdfast.resolutions (
  step_id bigint primary key,
  tenant text not null,
  resolved_at timestamptz not null,
  actor text not null,
  login text,                    -- as in the journal
  reason text
);
alter table holdfast.resolutions enable row level security;
alter table holdfast.resolutions force row level security;
