-- The toy keeps its counts as long as their lists.
create or replace function toy.age_counts(batch int)
returns int
language sql
begin atomic
  select 0;
end;
