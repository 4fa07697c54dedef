-- Removes the rows of a worker that stops in order, where the login may change them. Steps that it holds stay held
-- until they are settled or their leases run out.
create or replace function holdfast.retire_worker(worker text)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('worker', retire_worker.worker);
  delete from holdfast.workers w
   where w.worker = retire_worker.worker and holdfast.is_own_worker(w.tenants, holdfast.allowed_tenants());
end
$$;
grant execute on function holdfast.retire_worker to hf_worker;
