-- The state of runs, for whoever holds their handles: `outcome` is null until a run ends. `step`, `attempts` and
-- `error` are those of the first step that failed or, where none did, of the first that was cancelled. `reason` is that
-- of the run's last move, where a person gave one. Sees what its caller may see.
create or replace function holdfast.run_status(run_ids uuid[])
returns table (id uuid, name text, state text, phase text, outcome text, step text, attempts int, error jsonb,
               reason text, created_at timestamptz, started_at timestamptz, finished_at timestamptz,
               total int, succeeded int, failed int, cancelled int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- the steps of one run, whatever the statistics say
set jit = off
as $$
begin
  return query
  select r.id, r.name, r.state, r.phase, r.outcome, b.name, b.attempt, b.error,
         (select j.reason from holdfast.journal j
           where j.run_id = r.id and j.step_id is null order by j.id desc limit 1),
         r.created_at, r.started_at, r.finished_at, r.total, r.succeeded, r.failed, r.cancelled
    from holdfast.run_list r
    left join lateral (
      select n.name, s.attempt, s.error
        from holdfast.run_steps n
       cross join lateral (select * from holdfast.step_list l where l.id = n.step_id offset 0) s  -- each by primary key
       where n.run_id = r.id and s.outcome in ('failed', 'cancelled')
       order by s.outcome = 'failed' desc, s.id
       limit 1) b on r.failed + r.cancelled > 0
   where r.id = any (run_status.run_ids);
end
$$;
grant execute on function holdfast.run_status to hf_producer, hf_worker, hf_reader, hf_operator;
