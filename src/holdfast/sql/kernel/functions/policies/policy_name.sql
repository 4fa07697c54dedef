-- Returns the name under which a tenant's own version of a policy is stored; the shared one ('*') has the plain name.
create or replace function holdfast.policy_name(policy text, tenant text)
returns text
language sql immutable strict
begin atomic
  select policy_name.policy || case when policy_name.tenant = '*' then '' else ' for tenant ' || policy_name.tenant end;
end;
