-- `tries` counts executions, the first included.
insert into holdfast.policies
  (policy, tries, waits, base, growth, law, longest, jitter, jitter_in_seconds, longest_retry_after)
values
  ('flow.step', 3, '{1s,2s,4s,8s,16s,32s}', '0', 2, 'power', '300s', 0.1, true, '300s'),
  ('flow.sql', 3, '{}', '2s', 2, 'exponential', '30s', 0, false, '300s')
on conflict (policy) do update set
  tries = excluded.tries, waits = excluded.waits, base = excluded.base, growth = excluded.growth, law = excluded.law,
  longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
  longest_retry_after = excluded.longest_retry_after;
