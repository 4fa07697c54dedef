-- Returns the number of the event that a call of append_event repeats, or null. With a key it is the event with that
-- key. Without one it is the latest with the same level and message of the last 10 seconds. It reads the run's notes
-- from the newest on and stops at the first that is older.
create or replace function ops.repeated_event(step_id bigint, level text, message text, key text, clock timestamptz)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  since constant timestamptz := repeated_event.clock - interval '10 seconds';
  note record;
begin
  if repeated_event.key is not null then
    return (select k.note_id from holdfast.note_keys k
             where k.step_id = repeated_event.step_id and k.key = repeated_event.key);
  end if;
  for note in
    select n.id, n.at, n.level, n.message
      from holdfast.notes n
     -- The month's partition: a condition on the seconds would read all notes of the run to find that they are older.
     where n.step_id = repeated_event.step_id and n.at >= date_trunc('month', since)
     order by n.id desc
  loop
    exit when note.at <= since;  -- guard: window
    if note.level = repeated_event.level and note.message = repeated_event.message then
      return note.id;
    end if;
  end loop;
  return null;
end
$$;
