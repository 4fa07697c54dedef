-- How often a step may be executed from now on: once in any case, once when it is not to be tried again; made retryable, as often as
-- the machine's own policy says when it had one try.
create or replace function flow.adjusted_tries(tries int, retry_limit int, retryable boolean)
returns int
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if adjusted_tries.retry_limit < 0 then
    perform holdfast.refuse('RN005', format('a retry limit of %s makes no sense', adjusted_tries.retry_limit),
                            'it counts executions, the first included');
  end if;
  return case
    when not adjusted_tries.retryable then 1
    when adjusted_tries.retry_limit is not null then greatest(1, adjusted_tries.retry_limit)
    when adjusted_tries.retryable and adjusted_tries.tries = 1 then (
      select p.tries from holdfast.policy_of(null, null, 'flow.step') p)
    else adjusted_tries.tries end;
end
$$;
