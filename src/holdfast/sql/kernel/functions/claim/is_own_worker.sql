-- Whether a login that may act for `allowed` (null: all tenants) may touch the row of a worker that serves `tenants`. A
-- worker for all tenants is touched by logins for all.
create or replace function holdfast.is_own_worker(tenants text[], allowed text[])
returns boolean
language sql immutable
begin atomic
  select is_own_worker.allowed is null
      or coalesce(is_own_worker.tenants <@ is_own_worker.allowed and is_own_worker.tenants <> '{}', false);
end;
grant execute on function holdfast.is_own_worker to hf_producer, hf_worker, hf_reader, hf_operator;
