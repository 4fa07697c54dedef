-- Applying a rule writes less. A machine may name the events that its `moved` function wants (null: all), so that the
-- others cost no call.
alter table holdfast.machines add column moved_by text[];

-- Price changes have ids that follow their time: retention finds the oldest by primary key. A drop takes a moment and
-- waits for its lock no longer than a second.
-- squawk-ignore require-concurrent-index-deletion
drop index rules.ledger_by_age;
