-- Returns how many targets of a run are to be admitted: the included ones.
create or replace function rules.count_targets(run_id uuid)
returns int
language sql stable
begin atomic
  select f.included from rules.run_facts f where f.run_id = count_targets.run_id;
end;
