-- What a worker says of itself, and the schema of the face `work`. A function whose parameters change is dropped here.
create schema if not exists work;
comment on schema work is 'Holdfast: single tasks, in the words of the leased worker loop';

alter table holdfast.workers
  add column state text constraint known_worker_state check (state in (
    'startup', 'connecting', 'recovery', 'polling', 'claiming', 'processing', 'reporting_success', 'reporting_failure',
    'backoff', 'idle', 'error_wait', 'draining', 'stopped')),
  add column about jsonb not null default '{}';  -- host, pid, version, concurrency: whatever it says


-- A task's usage is found by its note's key: whoever sees the step may see which notes of it have keys.
alter table holdfast.note_keys enable row level security;
alter table holdfast.note_keys force row level security;
create policy kernel_sees_all on holdfast.note_keys to hf_owner using (true) with check (true);
create policy of_own_steps on holdfast.note_keys for select to hf_producer, hf_worker, hf_reader, hf_operator
  using (exists (select from holdfast.steps s where s.id = step_id));
