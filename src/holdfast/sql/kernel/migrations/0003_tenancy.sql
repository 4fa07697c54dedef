-- Which tenants a login role may act for, and row-level security that reads it.
create table holdfast.role_tenants (
  role_name text not null,
  tenant text not null,          -- '*': all
  primary key (role_name, tenant)
);
-- A login with rows of its own has those and no others; one without gets those of the groups it is in.
insert into holdfast.role_tenants values
  ('hf_owner', '*'), ('hf_worker', '*'), ('hf_operator', '*'), ('hf_reader', '*'), ('hf_producer', '*');

alter table holdfast.runs enable row level security;
alter table holdfast.runs force row level security;
alter table holdfast.steps enable row level security;
alter table holdfast.steps force row level security;
alter table holdfast.journal enable row level security;
alter table holdfast.journal force row level security;
alter table holdfast.notes enable row level security;
alter table holdfast.notes force row level security;
alter table holdfast.keys enable row level security;
alter table holdfast.keys force row level security;
alter table holdfast.run_steps enable row level security;
alter table holdfast.run_steps force row level security;
alter table holdfast.edges enable row level security;
alter table holdfast.edges force row level security;
