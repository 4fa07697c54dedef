-- Removes the counts of lists that retention is about to remove.
create or replace function toy.prune_counts(step_ids bigint[], run_ids uuid[])
returns void
language sql
begin atomic
  delete from toy.counts c where c.list_id = any (prune_counts.run_ids::text[]);
end;
