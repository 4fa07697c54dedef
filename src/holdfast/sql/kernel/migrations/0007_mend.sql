-- A definition belongs to one tenant, or to all ('*'): a login that may act for some tenants only defines things for those.
-- Everything that exists so far belongs to all. The tables are small.
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

-- Whether a policy retries at all, apart from how often.
alter table holdfast.policies add column retryable boolean not null default true;

-- It returns whole rows of the table, so it is made anew together with the columns: until the functions are installed,
-- workers of the previous release settle by it.
create or replace function holdfast.policy_of(own text, kind text, machine text)
returns setof holdfast.policies
language sql stable
begin atomic
  select p.*
    from holdfast.machines c
    left join holdfast.policies o on o.policy = policy_of.own
    left join holdfast.kinds k on k.kind = policy_of.kind and k.tenant = '*'
    join holdfast.policies p on p.policy = coalesce(o.policy, k.policy, c.policy)
   where c.machine = policy_of.machine;
end;

-- Which step ids a login reserved: a staged step takes no id that another login reserved. Upkeep forgets them after a day.
create table holdfast.reserved_ids (
  login text not null,
  first_id bigint not null,
  last_id bigint not null,
  reserved_at timestamptz not null,
  primary key (login, first_id)
);

-- Which machine's steps a worker takes (null: any). Who claims by work.claim_next_task leaves the steps of runs to others.
-- Functions of the last release do not name the column and go on working.
alter table holdfast.workers add column machine text;
