-- Who may pause, resume and stop the runs of a machine: a role, by name. Null: whoever may call the functions.
-- Functions of the last release do not name the column.
alter table holdfast.machines add column halted_by text;
