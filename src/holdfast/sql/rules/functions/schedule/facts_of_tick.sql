-- Returns the facts of the run that the input of a schedule names. Refuses a run that is not there.
create or replace function rules.facts_of_tick(input jsonb, tenant text)
returns rules.run_facts
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  facts rules.run_facts;
begin
  select f.* into facts from rules.run_facts f
   where f.run_id::text = lower(facts_of_tick.input ->> 'run_id') and f.tenant = facts_of_tick.tenant;
  if facts.run_id is null then
    perform holdfast.refuse('RN004', format('there is no rule run %s of tenant %s', facts_of_tick.input ->> 'run_id',
                                            facts_of_tick.tenant), 'remove the schedule', 'run_id');
  end if;
  return facts;
end
$$;
