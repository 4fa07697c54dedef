-- A tenant sees its own definitions, and everybody sees those for all tenants ('*').
alter table flow.definitions enable row level security;
alter table flow.definitions force row level security;
drop policy if exists kernel_sees_all on flow.definitions;
create policy kernel_sees_all on flow.definitions to hf_owner using (true) with check (true);
drop policy if exists own_tenants on flow.definitions;
create policy own_tenants on flow.definitions for select to hf_producer, hf_worker, hf_reader, hf_operator
  using ((select holdfast.allowed_tenants()) is null or tenant = '*'
         or tenant = any ((select holdfast.allowed_tenants())::text[]));
grant select on flow.definitions to hf_producer, hf_worker, hf_reader, hf_operator;
