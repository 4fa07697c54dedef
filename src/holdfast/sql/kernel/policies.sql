-- The retry laws of workers, and of faces that are still to come. `tries` counts executions, the first included.
insert into holdfast.policies
  (policy,         tries, waits, base,   growth, law,           longest, jitter, jitter_in_seconds, longest_retry_after)
values
  ('rules.target', 4,     '{}',  '2s',   2,      'exponential', '64s',   0.2,    false,             '1 hour'),
  ('rules.429',    4,     '{}',  '16s',  2,      'exponential', '64s',   0.2,    false,             '1 hour'),
  ('ingest.page',  3,     '{}',  '5s',   2,      'exponential', '60s',   0,      false,             '1 hour'),
  ('idle_poll',    null,  '{}',  '0.2s', 2,      'exponential', '10s',   0,      false,             '1 hour'),
  ('error_wait',   null,  '{}',  '5s',   1,      'exponential', null,    0,      false,             '1 hour')
on conflict (policy) do update set
  tries = excluded.tries, waits = excluded.waits, base = excluded.base, growth = excluded.growth, law = excluded.law,
  longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
  longest_retry_after = excluded.longest_retry_after;
