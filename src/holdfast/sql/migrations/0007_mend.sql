-- What the document of flows names and was missing: whether a policy retries at all, apart from how often; whether a step's backoff is
-- over; why a step is not ready; transitions of tasks by the function that makes those of steps.
alter table holdfast.policies add column retryable boolean not null default true;

-- It gives whole rows of the table, so it is made anew together with the column: between here and the installation of the functions
-- workers of the previous release settle by it.
-- Tenants: a login that may act for some tenants only defines things for those and sees its own workers.
-- A definition belongs to one tenant, or to all ('*'). Everything that exists so far belongs to all. The tables are small.
alter table holdfast.kinds add column tenant text not null default '*';
-- squawk-ignore ban-drop-constraint
alter table holdfast.kinds drop constraint kinds_pkey;
-- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
alter table holdfast.kinds add constraint kinds_pkey primary key (kind, tenant);
-- squawk-ignore require-concurrent-index-creation
create index kinds_of_tenants on holdfast.kinds (tenant) where tenant <> '*';  -- a claim asks whether there are any
alter table flow.definitions add column tenant text not null default '*';
-- squawk-ignore ban-drop-constraint
alter table flow.definitions drop constraint definitions_pkey;
-- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
alter table flow.definitions add constraint definitions_pkey primary key (namespace, name, version, tenant);
alter table holdfast.policies add column tenant text not null default '*';

-- Its rows have a column more from here on, so it is replaced in the same transaction.
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
    left join holdfast.kinds k on k.kind = policy_of.kind and k.tenant = '*'
    join holdfast.policies p on p.policy = coalesce(o.policy, k.policy, c.policy)
   where c.machine = policy_of.machine;
end;
