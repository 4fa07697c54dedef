-- Returns the policy that applies to a step of `tenant`: its own, else that of its kind (by the tenant's definition or
-- the shared one), else its machine's. PostgreSQL inlines it.
create or replace function holdfast.step_policy(own text, kind text, machine text, tenant text)
returns setof holdfast.policies
language sql stable
begin atomic
  select p.*
    from holdfast.machines c
    left join holdfast.policies o on o.policy = step_policy.own
    left join holdfast.kinds k on k.kind = step_policy.kind and (  -- as kinds_of has it, which readers may not call
      k.tenant = step_policy.tenant or (k.tenant = '*' and not exists (
        select from holdfast.kinds t where t.kind = k.kind and t.tenant = step_policy.tenant)))
    join holdfast.policies p on p.policy = coalesce(o.policy, k.policy, c.policy)
   where c.machine = step_policy.machine;
end;
grant execute on function holdfast.step_policy to hf_producer, hf_worker, hf_reader, hf_operator;
