-- Refuses invalid arguments of a start. One expression accepts the valid ones, which nearly all are.
create or replace function holdfast.check_start(name text, input jsonb, priority int)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if holdfast.is_name(check_start.name) and check_start.priority between 0 and 9
     and coalesce(pg_column_size(check_start.input) <= 1048576, true) then
    return;
  end if;
  perform holdfast.check_name('the name of a handler or run', coalesce(check_start.name, ''));
  if check_start.priority is null or check_start.priority not between 0 and 9 then
    perform holdfast.refuse('RN005', format('priority must be 0 to 9, got %s', check_start.priority),
                            'use 9 for the most urgent', 'priority');
  end if;
  perform holdfast.check_size('an input', check_start.input);
end
$$;
