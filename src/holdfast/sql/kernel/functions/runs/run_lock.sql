-- The advisory lock of a run's large changes: a lot that is admitted, a chunk that is moved, and the calls that begin
-- or end them. It keeps two of them from working on the same steps, and is not held by settles.
create or replace function holdfast.run_lock(run_id uuid)
returns bigint
language sql immutable
begin atomic
  select hashtextextended('holdfast.run ' || run_lock.run_id, 0);
end;
