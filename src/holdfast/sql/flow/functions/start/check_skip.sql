-- Refuses to skip steps that a plan does not have or that are not skippable.
create or replace function flow.check_skip(steps jsonb, skip text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  odd constant text := (
    select min(u.name)
      from unnest(check_skip.skip) u (name)
     where not exists (select from jsonb_array_elements(check_skip.steps) p
                        where p ->> 'name' = u.name and (p ->> 'skippable')::boolean));
begin
  if odd is not null then
    perform holdfast.refuse(
      'RN005', format('step %s cannot be skipped', odd),
      coalesce('these can: ' || (select string_agg(p ->> 'name', ', ') from jsonb_array_elements(check_skip.steps) p
                                  where (p ->> 'skippable')::boolean),
               'no step of the flow is skippable'));
  end if;
end
$$;
