-- squawk-ignore-file ban-concurrent-index-creation-in-transaction
create index concurrently if not exists steps_by_kind on holdfast.steps (kind, finished_at)
  where finished_at is not null;  -- as a report may need it
create index concurrently if not exists runs_by_name on holdfast.runs (name, id);
