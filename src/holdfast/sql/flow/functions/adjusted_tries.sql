-- How often a step may be executed from now on: as often as `retry_limit` says, once in any case, or as before where it is null.
create or replace function flow.adjusted_tries(tries int, retry_limit int)
returns int
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if adjusted_tries.retry_limit < 0 then
    perform holdfast.refuse('RN005', format('retry_limit must be 0 or more, got %s', adjusted_tries.retry_limit),
                            'it counts executions, the first included', 'retry_limit');
  end if;
  return case when adjusted_tries.retry_limit is null then adjusted_tries.tries else greatest(1, adjusted_tries.retry_limit) end;
end
$$;
