-- See kernel/dropped.sql.
-- squawk-ignore-file ban-drop-function
drop function if exists ingest.events_by(text, bigint[], uuid[]);
