-- Refuses a worker whose name is already in use by one that the login may not touch.
create or replace function holdfast.refuse_worker(worker text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse('RN009', format('worker %s serves tenants that %s may not act for',
                                          refuse_worker.worker, session_user),
                          'give the worker another name');
end
$$;
