-- Refuses a reason that is too long: it is journaled with each step that moves.
create or replace function holdfast.check_reason(reason text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if length(check_reason.reason) > 1000 then
    perform holdfast.refuse('RN005', format('reason must have at most 1000 characters, got %s',
                                            length(check_reason.reason)),
                            'shorten it, or link to the details', 'reason');
  end if;
end
$$;
