-- Writes a worker's row: which queue, kinds and machine it serves, and that it is alive. Called from time to time, not
-- with each claim. It does not change whether the worker sleeps. Steps that were parked until a worker serves them are
-- due again.
create or replace function holdfast.record_worker(
  worker text, queue text, kinds text[], tenants text[], machine text, clock timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select from holdfast.workers w
     where w.worker = record_worker.worker and w.queue = record_worker.queue
       and holdfast.is_recorded(w, record_worker.kinds, record_worker.tenants, record_worker.machine,
                                record_worker.clock)) then
    perform holdfast.check_name('queue', record_worker.queue);
    perform holdfast.check_names('kind', record_worker.kinds);
    perform holdfast.check_names('tenant', record_worker.tenants);
    insert into holdfast.workers as w (worker, queue, kinds, tenants, machine, started_at, seen_at)
    values (record_worker.worker, record_worker.queue, record_worker.kinds,
            record_worker.tenants, record_worker.machine,
            record_worker.clock, record_worker.clock)
    on conflict on constraint workers_pkey do update
      set kinds = excluded.kinds, tenants = excluded.tenants, machine = excluded.machine, seen_at = excluded.seen_at
      where holdfast.is_own_worker(w.tenants, holdfast.allowed_tenants());
    if not found then
      perform holdfast.refuse_worker(record_worker.worker);
    end if;
  end if;
  if exists (select from holdfast.steps s where s.parked_for = 'handler' and s.queue = record_worker.queue) then
    perform holdfast.unpark_served(record_worker.queue, record_worker.kinds, record_worker.tenants,
                                   record_worker.machine);
  end if;
end
$$;
