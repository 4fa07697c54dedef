-- Refuses policies that do not exist for the login's tenants.
create or replace function holdfast.check_policies(policies text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  unknown constant text := (
    select min(u.policy)
      from unnest(check_policies.policies) u (policy)
     where not exists (select from holdfast.policies p
                        where (p.policy = u.policy or p.policy = holdfast.policy_name(u.policy, p.tenant))
                          and (p.tenant = '*' or holdfast.matches_any(allowed, p.tenant))));
begin
  if unknown is not null then
    perform holdfast.refuse('RN005', format('there is no policy %s', unknown),
                            'holdfast.policies lists them', 'policy');
  end if;
end
$$;
