-- Returns the facts of a run that a login wants to change. Refuses a run that does not exist, or belongs to a tenant
-- that the login may not act for.
create or replace function rules.facts_to_change(run_id uuid)
returns rules.run_facts
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  facts rules.run_facts;
begin
  select f.* into facts from rules.run_facts f
   where f.run_id = facts_to_change.run_id
     and holdfast.matches_any(holdfast.allowed_tenants(), f.tenant);  -- guard: tenant
  if facts.run_id is null then
    perform holdfast.refuse_pruned(facts_to_change.run_id::text);
    perform holdfast.refuse('RN004', format('there is no rule run %s', facts_to_change.run_id),
                            'find the id with `holdfast rules list`', facts_to_change.run_id::text);
  end if;
  return facts;
end
$$;
