-- Writes several messages on a step that the caller has locked, in order, each once by its key. Returns how many were
-- written.
create or replace function holdfast.write_notes(
  step holdfast.steps, levels text[], messages text[], payloads jsonb[], keys text[], clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  written int;
begin
  with numbered as materialized (
    select g.*, nextval('holdfast.stream_ids') as id
      from unnest(write_notes.levels, write_notes.messages, write_notes.payloads,
                  write_notes.keys) g (level, message, payload, key)),
  kept as (
    insert into holdfast.note_keys
    select step.id, n.key, n.id, write_notes.clock + interval '30 days' from numbered n
    on conflict do nothing
    returning note_id)
  insert into holdfast.notes (id, at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  select n.id, write_notes.clock, step.tenant, step.id, step.run_id, step.attempt, step.lease_id, n.level, n.message,
         n.payload
    from numbered n
   where n.id in (select k.note_id from kept k)
   order by n.id;
  get diagnostics written = row_count;
  return written;
end
$$;
