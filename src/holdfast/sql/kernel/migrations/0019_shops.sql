-- Channels that fail: what became unknown, and how often a target was retried by hand. docs/design/rules.md says why.

-- Functions of the last release do not name the columns.
alter table rules.run_facts
  add column unknown int not null default 0,  -- failed targets of which nobody knows whether they were written
  -- squawk-ignore constraint-missing-not-valid
  add constraint unknown_is_not_negative check (unknown >= 0) not valid;

alter table rules.target_marks
  add column retries int not null default 1;  -- manual retries: part of the Idempotency-Key of a call
