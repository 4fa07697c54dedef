-- What a worker says of itself, and the schema of the face `work`. A function whose parameters change is dropped here.
create schema if not exists work;
comment on schema work is 'Holdfast: single tasks, in the words of the leased worker loop';

alter table holdfast.workers
  add column state text constraint known_worker_state check (state in (
    'startup', 'connecting', 'recovery', 'polling', 'claiming', 'processing', 'reporting_success', 'reporting_failure',
    'backoff', 'idle', 'error_wait', 'draining', 'stopped')),
  add column about jsonb not null default '{}';  -- host, pid, version, concurrency: whatever it says

-- Who calls it with `batch` alone finds the new one.
-- squawk-ignore ban-drop-function
drop function if exists holdfast.upkeep(int);
