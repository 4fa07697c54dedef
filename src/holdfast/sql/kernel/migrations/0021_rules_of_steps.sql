-- The triggers of steps check these rules for each statement (broken_rule): the server parses the text of a CHECK
-- constraint again with every statement, which took 7 % of a claim and settle of one step and 14 % of a start.
-- squawk-ignore-file ban-drop-constraint
alter table holdfast.steps
  drop constraint due_in_a_year_of_four_digits,
  drop constraint due_only_when_free,
  drop constraint finished_holds_no_lease,
  drop constraint input_is_small,
  drop constraint lease_is_whole,
  drop constraint parked_keeps_its_due_time,
  drop constraint parked_only_when_free,
  drop constraint priority_is_0_to_9,
  drop constraint waits_are_counted;
