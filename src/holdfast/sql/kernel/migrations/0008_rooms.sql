-- What a face says of its machines: a function that is called with the rows of the machine that moved, as
-- schema.function(moves holdfast.shared_move[]), and what people call a row ("task", "run", "target"). Machines of the
-- last release have neither until the code is installed, and its functions do not name the columns.
alter table holdfast.machines add column moved text;
alter table holdfast.machines add column label text;

-- A move that rows of one machine made in one statement. Of steps: `step_ids` of the run `run_id` (null: of none). Of
-- runs: the run alone, and no `step_ids`. A new row comes from the state `new` by the event `created`.
create type holdfast.shared_move as (run_id uuid, from_state text, event text, to_state text, step_ids bigint[]);
