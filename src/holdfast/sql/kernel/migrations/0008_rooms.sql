-- Who acts, and for whom.

-- The login that acted, where `actor` is a person whom it named; null where the actor acted itself. A login can name
-- anybody, so the one that did is kept. Functions of the last release do not name the column and go on working.
alter table holdfast.journal add column login text;
