-- Returns the name of a rule that the columns of a step break, or null. The triggers of steps ask it about every row
-- that is inserted or changed. As CHECK constraints the same rules took 7 % of a claim and settle of one step and 14 %
-- of a start: the server parses the text of each constraint again with every statement.
create or replace function holdfast.broken_rule(step holdfast.steps)
returns text
language sql stable  -- as pg_column_size is: an immutable one would not be inlined
begin atomic
  select case
    when step.due_at not between '1900-01-01 00:00Z' and '9999-01-01 00:00Z'
      then 'due_in_a_year_of_four_digits'
    when step.due_at is not null and (step.lease_id is not null or step.finished_at is not null or step.waits <> 0)
      then 'due_only_when_free'  -- guard: due-free
    when step.finished_at is not null and step.lease_id is not null
      then 'finished_holds_no_lease'
    when pg_column_size(step.input) > 1048576
      then 'input_is_small'
    when (step.lease_id is null) <> (step.lease_until is null) or (step.lease_id is null) <> (step.lease_owner is null)
      then 'lease_is_whole'  -- guard: whole
    when step.parked_for = 'handler' and step.parked_due_at is null
      then 'parked_keeps_its_due_time'
    when step.parked_due_at is not null
         and (step.due_at is not null or step.lease_id is not null or step.finished_at is not null or step.waits <> 0)
      then 'parked_only_when_free'  -- guard: parked-free
    when step.priority not between 0 and 9
      then 'priority_is_0_to_9'
    when step.waits < 0
      then 'waits_are_counted'
  end;
end;
