-- Refuses a worker that is not the one that claimed the run. A call that names none is not fenced.
create or replace function ops.check_worker(facts ops.run_facts, worker text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if check_worker.worker is not null
     and facts.claimed_by is distinct from check_worker.worker  -- guard: worker
  then
    perform holdfast.refuse(
      'RN002', format('run %s belongs to %s, not to %s', facts.run_id,
                      coalesce('worker ' || facts.claimed_by, 'no worker'), check_worker.worker),
      'stop working on it: only the worker that claimed a run reports on it', 'p_worker_id');
  end if;
end
$$;
