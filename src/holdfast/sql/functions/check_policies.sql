-- Refuses policies that do not exist.
create or replace function holdfast.check_policies(policies text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  unknown constant text := (select min(u.policy) from unnest(check_policies.policies) u (policy)
                             where not exists (select from holdfast.policies p where p.policy = u.policy));
begin
  if unknown is not null then
    perform holdfast.refuse('RN005', format('there is no policy %s', unknown), 'holdfast.policies lists them');
  end if;
end
$$;
