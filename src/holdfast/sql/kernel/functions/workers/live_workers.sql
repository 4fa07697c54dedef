-- Counts the live workers that serve a queue, for one kind and tenant where given. It names no worker: a login for some
-- tenants learns how many workers for all tenants serve the queue, but not which.
create or replace function holdfast.live_workers(queue text, kind text default null, tenant text default null)
returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return (
    select count(*)
      from holdfast.workers w
     where w.queue = live_workers.queue and holdfast.is_live_worker(w.seen_at, clock)
       and (live_workers.kind is null or holdfast.matches_any(w.kinds, live_workers.kind))
       and (live_workers.tenant is null or holdfast.matches_any(w.tenants, live_workers.tenant))
       and (allowed is null or w.tenants is null or w.tenants && allowed));
end
$$;
grant execute on function holdfast.live_workers to hf_producer, hf_worker, hf_reader, hf_operator;
