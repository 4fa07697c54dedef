-- Which machine's steps a worker takes (null: any). Who claims by work.claim_next_task leaves the steps of runs to others.
-- Functions of the last release do not name the column and go on working.
alter table holdfast.workers add column machine text;
