-- A list begins at once.
create or replace function toy.unwanted_lists(most int)
returns uuid[]
language sql stable
begin atomic
  select array[]::uuid[];
end;
