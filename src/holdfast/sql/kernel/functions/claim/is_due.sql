-- Whether a step may be claimed at that time. The one definition: the claim's picks and a face's readiness both ask it. It is put
-- into a query as it stands, so that the index of due steps answers it. A due time goes only with a step that is free: no
-- lease, no end, no parent left to wait for (due_only_when_free).
create or replace function holdfast.is_due(step holdfast.steps, clock timestamptz)
returns boolean
language sql immutable
begin atomic
  select step.due_at <= is_due.clock;  -- guard: due
end;
grant execute on function holdfast.is_due to hf_producer, hf_worker, hf_reader, hf_operator;
