-- Whether a login that may act for `allowed` (null: all tenants) may change the row of a worker that serves `tenants`.
-- Only logins for all tenants may change a worker for all.
create or replace function holdfast.is_own_worker(tenants text[], allowed text[])
returns boolean
language sql immutable
begin atomic
  select is_own_worker.allowed is null
      or coalesce(is_own_worker.tenants <@ is_own_worker.allowed and is_own_worker.tenants <> '{}', false);
end;
grant execute on function holdfast.is_own_worker to hf_producer, hf_worker, hf_reader, hf_operator;
