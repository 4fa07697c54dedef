-- Ingest: feeds, their runs and partitions, and the records that they bring. docs/design/ingest.md explains the tables.

-- One more phase. open_or_held: due or under a lease, and the lease tells which (a partition between two pages).
-- squawk-ignore ban-drop-constraint
alter table holdfast.machine_states drop constraint known_phase;
-- squawk-ignore constraint-missing-not-valid
alter table holdfast.machine_states add constraint known_phase check (
  phase in ('shut', 'open', 'held', 'over', 'open_or_over', 'open_or_held'));

create schema if not exists ingest;
comment on schema ingest is 'Holdfast: partitioned pulls from a source into a table';

-- What a worker that serves a feed said of it last.
create table ingest.known_feeds (
  feed text primary key,
  id int generated always as identity unique,    -- in the rows of its records: an int is narrower than a name
  tenant text not null,
  raw_name text not null unique,                 -- of the view of its records
  settings jsonb not null default '{}',          -- page_size, workers, batch, max_rejects, … and what people read
  defined_at timestamptz not null,
  constraint feed_is_an_identifier check (feed ~ '^[a-z][a-z0-9_]{0,40}$'),
  constraint raw_name_is_an_identifier check (raw_name ~ '^raw_[a-z0-9_]{1,50}$')
);

-- A start, from the moment it is requested. Its task counts the source and then creates the run.
create table ingest.starts (
  run_id uuid primary key,
  step_id bigint not null unique,
  feed text not null,
  tenant text not null,
  run_type text,                                 -- null: full the first time, then incremental
  since timestamptz,                             -- of a backfill
  until timestamptz,
  trace_id text not null,
  started_at timestamptz not null,
  constraint known_start_type check (run_type in ('full', 'incremental')),
  constraint backfill_has_a_window check ((since is null) = (until is null) and since < until)
);
create index starts_of_feed on ingest.starts (feed, started_at);

-- One row per run. The kernel's run decides; ingest.record_run_moves copies its state here, in the same transaction, so
-- that the document's table has its constraints.
create table ingest.run_facts (
  run_id uuid primary key,
  no bigint generated always as identity unique, -- in the rows of its records
  feed text not null,
  tenant text not null,
  run_type text not null,
  expected_workers int not null,
  completed_workers int not null default 0,
  failed_workers int not null default 0,
  watermark_before timestamptz,
  watermark_after timestamptz,
  started_at timestamptz not null default clock_timestamp(),
  completed_at timestamptz,
  state text not null default 'created',
  forced boolean not null default false,
  is_backfill boolean not null default false,
  advances boolean not null default true,        -- whether its end moves the watermark
  updated_from timestamptz,                      -- exclusive; null: from the beginning
  updated_to timestamptz not null,               -- inclusive
  estimated bigint,                              -- records, as counted; null: the source does not count
  records bigint not null default 0,
  quarantined int not null default 0,
  deleted int not null default 0,
  rounds int not null default 0,                 -- how often its consolidation was triggered
  pricing jsonb,                                 -- the rules as the consolidation froze them
  reason text,                                   -- why it failed
  trace_id text not null,
  constraint known_run_type check (run_type in ('full', 'incremental')),
  constraint known_run_state check (state in (
    'created', 'workers_running', 'consolidation_skipped', 'consolidation_triggered', 'consolidating', 'completed',
    'failed', 'cancelled')),
  constraint workers_add_up check (
    expected_workers >= 0 and completed_workers >= 0 and failed_workers >= 0
    and completed_workers + failed_workers <= expected_workers),
  constraint created_has_no_finished_worker check (state <> 'created' or completed_workers + failed_workers = 0),
  constraint skipped_has_a_failed_worker check (state <> 'consolidation_skipped' or failed_workers > 0),
  constraint consolidates_all_or_forced check (
    state not in ('consolidation_triggered', 'consolidating', 'completed')
    or (completed_workers + failed_workers = expected_workers and (failed_workers = 0 or forced))),
  constraint completed_has_completed_at check ((state = 'completed') = (completed_at is not null)),
  constraint watermark_after_when_completed check (
    case when state = 'completed' then (watermark_after is not null) = advances else watermark_after is null end),
  constraint window_has_an_order check (updated_from <= updated_to)
);
create unique index one_active_run_per_feed on ingest.run_facts (feed)
  where state not in ('completed', 'failed', 'cancelled');
create index runs_of_feed on ingest.run_facts (feed, no);
create index run_facts_by_start on ingest.run_facts (started_at);

-- One row per partition: what the document has as worker_runs and partition_progress.
create table ingest.partitions (
  id uuid not null default gen_random_uuid() unique,
  run_id uuid not null references ingest.run_facts (run_id),
  partition_id text not null,
  step_id bigint unique,
  tenant text not null,
  worker_id text,                                -- null until a worker starts it
  status text,
  records_processed int not null default 0,
  error_message text,
  work_item_payload jsonb not null,
  started_at timestamptz,
  completed_at timestamptz,
  next_offset int not null default 0,
  completed boolean not null default false,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  primary key (run_id, partition_id),
  constraint known_worker_status check (status in ('running', 'completed', 'failed')),
  constraint started_has_a_worker check ((worker_id is null) = (started_at is null)),
  constraint completed_partition_is_whole check (completed = (status is not distinct from 'completed')),
  constraint offset_is_not_negative check (next_offset >= 0 and records_processed >= 0)
) with (fillfactor = 70);

create table ingest.feed_watermarks (
  feed text primary key references ingest.known_feeds (feed),
  tenant text not null,
  last_updated_at timestamptz not null,
  last_run_id uuid,                              -- null: a person set it
  last_run_completed_at timestamptz,
  changed_at timestamptz not null
);

-- A record as the source sent it. One LIST partition per feed, made by ingest.define_feed.
create table ingest.payloads (
  feed_id int not null,
  key text collate "C" not null,
  payload jsonb not null,
  updated_at timestamptz,
  deleted boolean not null default false,        -- the source said so, or a full run did not bring it
  changed_at timestamptz not null,
  primary key (feed_id, key)
) partition by list (feed_id);

-- Beside each payload a narrow row: a record that comes again unchanged rewrites only this one.
create table ingest.sightings (
  feed_id int not null,
  run_no bigint not null,                        -- the run that it belongs to: that changed it, or took it over
  seen_no bigint not null,                       -- the run that saw it last
  seen_by bigint not null,                       -- the step of that run's partition
  seen_round smallint not null,
  consolidated boolean not null default false,
  repeated boolean not null default false,       -- the same walk of that partition had brought it already
  key text collate "C" not null,
  target_key text,                               -- its key in the target, where that is another one
  primary key (feed_id, key)
) partition by list (feed_id);

create table ingest.quarantined (
  id bigint generated always as identity primary key,
  run_id uuid not null,
  feed text not null,
  tenant text not null,
  partition_id text,
  stage text not null,                           -- fetch: not stored. map, store: its raw row is there
  key text,
  record text,
  error text not null,
  at timestamptz not null,
  constraint known_stage check (stage in ('fetch', 'map', 'store'))
);
create unique index quarantined_once on ingest.quarantined (run_id, md5(coalesce('k' || key, 'r' || record)));
create index quarantined_by_age on ingest.quarantined (at);

create table ingest.prices (
  id bigint generated always as identity primary key,
  feed text not null,
  tenant text not null,
  priority int not null,                         -- lower first
  criteria jsonb not null default '{}',
  markup numeric not null,
  rating text,
  created_at timestamptz not null,
  constraint criteria_is_an_object check (jsonb_typeof(criteria) = 'object'),
  constraint markup_is_positive check (markup > 0)
);
create unique index one_price_per_priority on ingest.prices (feed, priority);

-- What happened, in the transaction in which it did. Delivery comes with the outbox.
create table ingest.event_log (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  tenant text not null,
  feed text not null,
  run_id uuid not null,
  trace_id text not null,
  event text not null,
  severity text not null default 'info',
  partition_id text,
  message text,
  body jsonb not null default '{}',
  constraint known_severity check (severity in ('info', 'warning', 'critical'))
);
create index events_of_run on ingest.event_log (run_id, id);
