-- Each page and each batch is delivered up to three times (C-29); a page that was read begins anew.
insert into holdfast.policies
  (policy,         tries, waits, base, growth, law,           longest, jitter, jitter_in_seconds, longest_retry_after)
values
  ('ingest.queue', 3,     '{}',  '1s', 2,      'exponential', '20s',   0.1,    false,             '1 hour')
on conflict (policy) do update set
  tries = excluded.tries, waits = excluded.waits, base = excluded.base, growth = excluded.growth, law = excluded.law,
  longest = excluded.longest, jitter = excluded.jitter, jitter_in_seconds = excluded.jitter_in_seconds,
  longest_retry_after = excluded.longest_retry_after;
