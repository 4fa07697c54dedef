-- The UPDATE trigger of ops.runs: takes the document's statement that cancels stale runs, and refuses everything else.
-- A run that has started, or ended, since the statement read it is left alone, as it would be in a table.
create or replace function ops.take_stale_update()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  settable constant text[] := '{status,finished_at,updated_at,metadata}';
  odd constant text := (
    select string_agg(n.key, ', ' order by n.key)
      from jsonb_each(to_jsonb(new) - settable) n
     where n.value is distinct from to_jsonb(old) -> n.key);
begin
  if new is not distinct from old then
    return new;
  end if;
  if odd is not null or new.finished_at is null or not new.metadata ?& array(select jsonb_object_keys(old.metadata))
     or old.status <> 'claimed' or new.status <> 'cancelled' then  -- guard: statement
    raise exception using errcode = 'RN005',
      message = format('ops.runs cannot be updated so: %s of run %s, %s to %s', coalesce(odd, 'status'), old.run_id,
                       old.status, new.status),
      hint = 'the one UPDATE cancels claimed runs that are stale, and adds to their metadata; report with '
             'ops.append_event, end a run with ops.finish_run, cancel one with ops.cancel_run';
  end if;
  return case when ops.cancel_if_stale(old.run_id, new.metadata) then new end;
end
$$;
