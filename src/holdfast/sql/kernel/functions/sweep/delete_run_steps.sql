-- Deletes steps of runs with their edges, the keys of their notes and their faces' rows.
create or replace function holdfast.delete_run_steps(ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform holdfast.call_prunes(delete_run_steps.ids, '{}');
  delete from holdfast.edges e where e.step_id = any (delete_run_steps.ids);  -- guard: edges
  delete from holdfast.note_keys k where k.step_id = any (delete_run_steps.ids);  -- guard: notes
  delete from holdfast.resolutions r where r.step_id = any (delete_run_steps.ids);
  delete from holdfast.steps s where s.id = any (delete_run_steps.ids);
end
$$;
