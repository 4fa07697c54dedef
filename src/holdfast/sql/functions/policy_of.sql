-- The policy that counts for a step: its own, else its kind's, else its machine's. It is put into a query as it stands.
create or replace function holdfast.policy_of(own text, kind text, machine text)
returns setof holdfast.policies
language sql stable
begin atomic
  select p.*
    from holdfast.machines c
    left join holdfast.policies o on o.policy = policy_of.own
    left join holdfast.kinds k on k.kind = policy_of.kind
    join holdfast.policies p on p.policy = coalesce(o.policy, k.policy, c.policy)
   where c.machine = policy_of.machine;
end;
