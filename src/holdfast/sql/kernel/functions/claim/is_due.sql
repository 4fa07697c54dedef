-- Whether a step may be claimed at that time. The only definition: claims and the readiness of faces both use it.
-- PostgreSQL inlines it, so that the index of due steps serves it. Only a free step has a due time: no lease, no end,
-- no parent to wait for (due_only_when_free).
create or replace function holdfast.is_due(step holdfast.steps, clock timestamptz)
returns boolean
language sql immutable
begin atomic
  select step.due_at <= is_due.clock;  -- guard: due
end;
grant execute on function holdfast.is_due to hf_producer, hf_worker, hf_reader, hf_operator;
