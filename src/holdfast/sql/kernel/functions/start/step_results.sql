-- What became of steps, for who waits for them: the outcome is null while a step is not over. Sees what its caller may
-- see.
create or replace function holdfast.step_results(step_ids bigint[])
returns table (step_id bigint, state text, outcome text, result jsonb, error jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select s.id, s.state, case when s.finished_at is not null then t.outcome end, s.result, s.error
    from holdfast.steps s
    join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
   where s.id = any (step_results.step_ids) and holdfast.matches_any(allowed, s.tenant)
     and (s.run_id is null or exists (select from holdfast.runs r where r.id = s.run_id));  -- else retention removes it
end
$$;
grant execute on function holdfast.step_results to hf_producer, hf_worker, hf_reader, hf_operator;
