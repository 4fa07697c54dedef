-- Registers a worker that has connected: which queues it serves, for which kinds and tenants (null: any), and free
-- facts about it in `about`, whose `state` is the worker's own state. The worker is awake. Steps that were parked until
-- a worker serves them are due again.
create or replace function holdfast.enlist_worker(
  worker text, queues text[], kinds text[] default null, tenants text[] default null, about jsonb default '{}')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- as in claim_steps: steps are unparked by index, whatever the statistics say
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  serves constant text[] := holdfast.narrow_tenants(enlist_worker.tenants);
  queues constant text[] := array(
    select distinct q.queue from unnest(enlist_worker.queues) q (queue) where q.queue is not null);
  written int;
  served text;
begin
  perform holdfast.check_claim(enlist_worker.worker, 1, null);
  perform holdfast.check_about(enlist_worker.about);
  perform holdfast.check_names('queue', queues);
  perform holdfast.check_names('kind', enlist_worker.kinds);
  perform holdfast.check_names('tenant', enlist_worker.tenants);
  if queues = '{}' then
    perform holdfast.refuse('RN005', format('worker %s serves no queue', enlist_worker.worker),
                            'name at least one, such as default', 'queues');
  end if;
  if serves = '{}' then
    perform holdfast.refuse('RN009', format('worker %s serves no tenant that %s may act for',
                                            enlist_worker.worker, session_user),
                            'name tenants that the login has in holdfast.role_tenants');
  end if;
  delete from holdfast.workers w
   where w.worker = enlist_worker.worker and w.queue <> all (queues) and holdfast.is_own_worker(w.tenants, allowed);
  insert into holdfast.workers as w (worker, queue, kinds, tenants, state, about, started_at, seen_at)
  select enlist_worker.worker, q.queue, enlist_worker.kinds, serves, enlist_worker.about ->> 'state',
         coalesce(enlist_worker.about, '{}'), clock, clock
    from unnest(queues) q (queue)
  on conflict on constraint workers_pkey do update
    set kinds = excluded.kinds, tenants = excluded.tenants, machine = null, state = excluded.state,
      about = excluded.about,
        is_asleep = false, seen_at = excluded.seen_at
    where holdfast.is_own_worker(w.tenants, allowed);
  get diagnostics written = row_count;
  if written < cardinality(queues) then
    perform holdfast.refuse_worker(enlist_worker.worker);
  end if;
  perform holdfast.set_actor('worker', enlist_worker.worker);
  foreach served in array queues loop
    perform holdfast.record_worker(enlist_worker.worker, served, enlist_worker.kinds, serves, null, clock);
  end loop;
  perform holdfast.set_actor();
end
$$;
grant execute on function holdfast.enlist_worker to hf_worker;
