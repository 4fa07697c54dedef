-- Whether a step counts as live in its run: due, parked, backing off or held.
create or replace function holdfast.is_live(step holdfast.steps)
returns boolean
language sql immutable
begin atomic
  select step.finished_at is null
     and (step.due_at is not null or step.lease_id is not null or step.parked_due_at is not null);
end;
grant execute on function holdfast.is_live to hf_producer, hf_worker, hf_reader, hf_operator;
