-- The story of a step calls the reason of a move and the text of a note `message`, as step_events does. Views come
-- after migrations, so a new database does not have it yet.
-- squawk-ignore renaming-column
alter view if exists holdfast.step_story rename column said to message;
