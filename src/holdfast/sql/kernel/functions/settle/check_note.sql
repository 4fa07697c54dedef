-- Refuses a note that cannot be written: an unknown level, an invalid key, a message or payload that is too
-- large.
create or replace function holdfast.check_note(level text, message text, payload jsonb, key text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if check_note.level is null or check_note.level not in ('debug', 'info', 'warn', 'error') then
    perform holdfast.refuse('RN005', format('level must be debug, info, warn or error, got %s', check_note.level),
                            'use info for progress', 'level');
  end if;
  perform holdfast.check_name('key', check_note.key, 400);
  perform holdfast.check_size('a note''s payload', check_note.payload);
  if octet_length(check_note.message) > 100000 then  -- as JSON a character has up to six bytes
    perform holdfast.check_size('a note''s message', to_jsonb(check_note.message));
  end if;
end
$$;
