-- Whether a target takes part in its run's apply. The only definition; PostgreSQL inlines it.
create or replace function rules.is_included(facts rules.run_facts, step_id bigint)
returns boolean
language sql stable
begin atomic
  select facts.includes_others <> exists (
    select from rules.exceptions e where e.run_id = facts.run_id and e.step_id = is_included.step_id);
end;
grant execute on function rules.is_included to hf_producer, hf_worker, hf_reader, hf_operator;
