-- The trigger of ingest.event_log, which is append-only. Its rows go with their run, once that is over.
create or replace function ingest.refuse_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op = 'DELETE' then
    if exists (select from ingest.run_facts r where r.run_id = old.run_id
                and r.state in ('completed', 'failed', 'cancelled')) then  -- guard: over
      return old;
    end if;
  end if;
  perform holdfast.refuse('RN008', format('ingest.%s is append-only: %s is refused', tg_table_name, lower(tg_op)),
                          'retention removes the events of a run together with the run');
  return null;
end
$$;
