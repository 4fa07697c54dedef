-- Returns the outcomes of runs for callers that wait for them: null while a run is not over. Shows what its caller may
-- see.
create or replace function holdfast.run_results(run_ids uuid[])
returns table (run_id uuid, state text, outcome text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select r.id, r.state, case when r.finished_at is not null then t.outcome end
    from holdfast.runs r
    join holdfast.machine_states t on t.machine = r.machine and t.state = r.state
   where r.id = any (run_results.run_ids) and holdfast.matches_any(allowed, r.tenant);
end
$$;
grant execute on function holdfast.run_results to hf_producer, hf_worker, hf_reader, hf_operator;
