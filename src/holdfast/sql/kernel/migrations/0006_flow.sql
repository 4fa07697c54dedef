-- The schema of the face `flow`, and the definitions that workers say to it.
create schema if not exists flow;
comment on schema flow is 'Holdfast: workflows, in the words of the DAG engine';

-- What a flow looks like, as a worker that serves it said last. A run keeps the shape it began with: its rows are its shape.
create table flow.definitions (
  namespace text not null,
  name text not null,
  version text not null,
  description text,
  steps jsonb not null,          -- the plan, as holdfast.start_run takes it, and what else a step says of itself
  context_schema jsonb,          -- JSON Schema of the context that a start takes
  defined_at timestamptz not null,
  primary key (namespace, name, version)
);

-- What the face's functions answer with.
create type flow.step_readiness as (
  step_id bigint, task_id uuid, name text, current_state text, dependencies_satisfied boolean, retry_eligible boolean,
  ready_for_execution boolean, last_failure_at timestamptz, next_retry_at timestamptz, total_parents int, completed_parents int,
  attempts int, retry_limit int, backoff_request_seconds numeric, last_attempted_at timestamptz,
  processed boolean, in_process boolean, retryable boolean);
create type flow.task_execution_context as (
  task_id uuid, name text, namespace text, version text, state text, total_steps bigint, pending_steps bigint,
  in_progress_steps bigint, completed_steps bigint, failed_steps bigint, ready_steps bigint, blocked_steps bigint,
  execution_status text, recommended_action text, completion_percentage numeric, health_status text,
  earliest_retry_at timestamptz);

-- When its last try failed: its backoff counts from then. Null, as it is for most, it costs nothing.
alter table holdfast.steps add column failed_at timestamptz;
