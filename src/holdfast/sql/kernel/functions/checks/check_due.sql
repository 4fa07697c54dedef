-- Refuses a due time outside the years 1900 to 9998.
create or replace function holdfast.check_due(due_at timestamptz)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not holdfast.is_in_reach(check_due.due_at) then
    perform holdfast.refuse('RN005', format('due_at must be in the years 1900 to 9998, got %s', check_due.due_at),
                            'leave it out to make the step due now', 'due_at');
  end if;
end
$$;
