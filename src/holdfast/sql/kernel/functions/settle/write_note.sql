-- Writes a message on a step that the caller has locked, and returns its id. With a `key` it is written once: later
-- calls return its id.
create or replace function holdfast.write_note(
  step holdfast.steps, level text, message text, payload jsonb, key text, clock timestamptz)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  written bigint := nextval('holdfast.stream_ids');
begin
  if write_note.key is not null then
    insert into holdfast.note_keys values (step.id, write_note.key, written, write_note.clock + interval '30 days')
    on conflict do nothing;
    if not found then
      return (select k.note_id from holdfast.note_keys k where k.step_id = step.id and k.key = write_note.key);
    end if;
  end if;
  insert into holdfast.notes (id, at, tenant, step_id, run_id, attempt, lease_id, level, message, payload)
  values (written, write_note.clock, step.tenant, step.id, step.run_id, step.attempt, step.lease_id, write_note.level,
          coalesce(write_note.message, ''), coalesce(write_note.payload, '{}'));
  return written;
end
$$;
