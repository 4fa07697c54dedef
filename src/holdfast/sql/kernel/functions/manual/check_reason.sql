-- Refuses a reason that is a book: it is journaled with each step that it moves.
create or replace function holdfast.check_reason(reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if length(check_reason.reason) > 1000 then
    perform holdfast.refuse('RN005', format('a reason of %s characters is too long', length(check_reason.reason)),
                            'say it in 1000, or say where it is written', 'reason');
  end if;
end
$$;
