-- The machine of a run, by which the face of its handle is found; no row if there is no such run. Sees what its caller
-- may see.
create or replace function holdfast.run_machine(of_run uuid)
returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
begin
  return query
  select r.machine from holdfast.run_list r where r.id = run_machine.of_run;
end
$$;
grant execute on function holdfast.run_machine to hf_producer, hf_worker, hf_reader, hf_operator;
