-- Refuses a worker whose name is already in use by a worker that the login may not change.
create or replace function holdfast.refuse_worker(worker text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.refuse('RN009', format('worker %s serves tenants that %s may not act for',
                                          refuse_worker.worker, session_user),
                          'use another name for the worker');
end
$$;
