-- The policy that counts for a step of `tenant`: its own, else that of its kind by the tenant's definition or, where it
-- has none, by everybody's, else its machine's. It is put into a query as it stands.
create or replace function holdfast.step_policy(own text, kind text, machine text, tenant text)
returns setof holdfast.policies
language sql stable
begin atomic
  select p.*
    from holdfast.machines c
    left join holdfast.policies o on o.policy = step_policy.own
    left join lateral (
      select k.policy from holdfast.kinds k
       where k.kind = step_policy.kind and k.tenant in (step_policy.tenant, '*')
       order by k.tenant = '*' limit 1) k on true
    join holdfast.policies p on p.policy = coalesce(o.policy, k.policy, c.policy)
   where c.machine = step_policy.machine;
end;
