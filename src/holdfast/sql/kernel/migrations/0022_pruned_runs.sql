-- The ids of ops runs that retention removed: the journal knows a run by the number of its step.
create table ops.pruned_runs (
  run_id text primary key,
  step_id bigint not null,
  tenant text not null,
  pruned_at timestamptz not null
);
create index pruned_runs_by_age on ops.pruned_runs (pruned_at);
