-- Consolidates a failed run once more, as its facts now say. The caller has called set_actor.
create or replace function ingest.queue_consolidation(run_id uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from holdfast.runs r where r.id = queue_consolidation.run_id for update;
  perform ingest.drop_consolidation(queue_consolidation.run_id);
  perform ingest.trigger_consolidation(queue_consolidation.run_id);
  if holdfast.move_runs(array[queue_consolidation.run_id], 'queued', holdfast.clock()) = 0 then
    perform holdfast.refuse('RN010', format('run %s cannot be queued', queue_consolidation.run_id));
  end if;
end
$$;
