-- What the document of flows names and was missing: whether a policy retries at all, apart from how often; whether a step's backoff is
-- over; why a step is not ready; transitions of tasks by the function that makes those of steps.
alter table holdfast.policies add column retryable boolean not null default true;

-- It gives whole rows of the table, so it is made anew together with the column: between here and the installation of the functions
-- workers of the previous release settle by it.
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

alter type flow.step_readiness
  add attribute backoff_period_expired boolean,
  add attribute waiting_reason text;

-- Who calls them with the parameters of before finds the new ones: they take one more, or another type.
-- squawk-ignore ban-drop-function
drop function if exists holdfast.define_policy(text, int, interval[], interval, numeric, interval, numeric, interval, text, boolean);
-- squawk-ignore ban-drop-function
drop function if exists flow.policy_with_tries(text, int);
-- squawk-ignore ban-drop-function
drop function if exists flow.adjusted_tries(int, int, boolean);
-- squawk-ignore ban-drop-function
drop function if exists flow.safe_transition_to(bigint, text, text);
