-- The schema of the face `flow`, and the definitions that workers say to it.
create schema if not exists flow;
comment on schema flow is 'Holdfast: workflows, in the words of the DAG engine';

-- What a flow looks like, as a worker that serves it said last. A run keeps the shape it began with: its rows are its shape.
create table flow.definitions (
  namespace text not null,
  name text not null,
  version text not null,
  description text,
  steps jsonb not null,          -- the plan, as holdfast.start_run takes it, and what else a step says of itself
  context_schema jsonb,          -- JSON Schema of the context that a start takes
  defined_at timestamptz not null,
  primary key (namespace, name, version)
);

-- Who calls them with the parameters of before finds the new ones, which take more.
-- squawk-ignore ban-drop-function
drop function if exists holdfast.define_policy(text, int, interval[], interval, numeric, interval, numeric, interval);
-- squawk-ignore ban-drop-function
drop function if exists holdfast.resolve(text, text);
-- squawk-ignore ban-drop-function
drop function if exists holdfast.wish(text, text, text);
-- squawk-ignore ban-drop-function
drop function if exists holdfast.wish_for_step(holdfast.steps, text);
