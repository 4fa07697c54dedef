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
