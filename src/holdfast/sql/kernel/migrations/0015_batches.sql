-- Batch handlers: one call serves up to `batch` steps of a kind. docs/design/bulk.md says how it works.

-- Functions of the last release do not name the columns and leave them as they are.
alter table holdfast.kinds
  add column batch int,          -- steps that one call may serve; null: 1
  add column batch_by text,      -- the field of the input that the steps of a call share; null: any steps may
  -- squawk-ignore constraint-missing-not-valid
  add constraint batch_is_1_to_10000 check (batch between 1 and 10000),
  -- squawk-ignore constraint-missing-not-valid
  add constraint batch_by_needs_a_batch check (batch_by is null or batch is not null);

-- Null, as they are for steps of kinds without a batch, they cost nothing.
alter table holdfast.steps
  add column batch_key text,     -- steps of a kind and tenant with the same one share calls; '': no field
  add column alone boolean;      -- its call lost its worker or ran out of time: its next calls have no other step

-- Last, because workers of the last release read the columns by position. The last three are null unless the step's
-- kind has a batch. Steps of one claim with the same `call` are one call of their handler.
alter type holdfast.claimed_step
  add attribute batch_key text,
  add attribute call int,
  add attribute tenant text,
  add attribute is_alone boolean;

-- What a claim picked: whole calls, with the number of each step's call, and whether the claim has to end with them.
create type holdfast.call_pick as (ids bigint[], calls int[], run_ids uuid[], is_over boolean);
