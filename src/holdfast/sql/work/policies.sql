-- `tries` counts executions, the first included.
insert into holdfast.policies
  (policy,      tries, waits, base, growth, law,           longest, jitter, jitter_in_seconds, longest_retry_after)
values
  ('work.task', 3,     '{}',  '0',  1,      'exponential', null,    0,      false,             '1 hour')
on conflict (policy) do update set
  tries = excluded.tries, waits = excluded.waits, base = excluded.base, growth = excluded.growth, law = excluded.law,
  longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
  longest_retry_after = excluded.longest_retry_after;
