-- Marks of machines, what is remembered of pruned runs, and who asked for an approval.
-- Which steps went with the runs: by their ids the journal is found that it keeps of them.
alter table holdfast.prunings add column steps int8multirange not null default '{}';
-- Who may pause, resume and stop the runs of a machine: a role, by name. Null: whoever may call the functions.
-- Functions of the last release do not name the column.
alter table holdfast.machines add column halted_by text;
-- A face may keep the start of its machine's steps, and one reason for parking them, to its own functions: they check
-- what the kernel does not know, such as an approval. Approvals know the login that queued their run.
alter table holdfast.machines
  add column started_by text,   -- the face's function that starts its rows; null: the kernel's functions do
  add column own_parking text,  -- a reason for which only the face parks and unparks its steps
  add column unparked_by text;  -- and the function that unparks them
alter table ops.run_approvals add column requested_login text;
