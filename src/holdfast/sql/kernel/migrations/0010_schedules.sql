-- Schedules: work that the clock starts. docs/design/clock.md says how it works.

-- The functions of each face that the kernel calls, as its entry in FACES names them; the installation fills it. Null: the
-- face has none.
create table holdfast.faces (
  face text primary key,
  starts text,                   -- schema.function(target text, input jsonb, options jsonb, tenant text) returns text[]
  is_open text,                  -- schema.function(ids text[]) returns boolean
  cancels text,                  -- schema.function(ids text[], reason text) returns void
  prunes text                    -- schema.function(step_ids bigint[], run_ids uuid[]) returns void
);

-- The runs that undo, check or retry another one: few, so the index is small.
-- squawk-ignore require-concurrent-index-creation
create index runs_of_run on holdfast.runs (of_run) where of_run is not null;
