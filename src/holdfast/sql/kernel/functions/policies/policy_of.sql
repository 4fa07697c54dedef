-- Returns the policy that applies to a step of no particular tenant: its own, else its kind's, else its machine's.
create or replace function holdfast.policy_of(own text, kind text, machine text)
returns setof holdfast.policies
language sql stable
begin atomic
  select p.* from holdfast.step_policy(policy_of.own, policy_of.kind, policy_of.machine, '*') p;
end;
grant execute on function holdfast.policy_of to hf_producer, hf_worker, hf_reader, hf_operator;
