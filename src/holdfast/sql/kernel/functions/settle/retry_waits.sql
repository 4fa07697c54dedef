-- Returns in how long steps are due again, for the log of a worker that has just settled them. Steps that are not
-- waiting, because somebody has claimed them already or they are over, are omitted. Sees what its caller may see.
create or replace function holdfast.retry_waits(step_ids bigint[])
returns table (step_id bigint, wait interval)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select s.id, greatest(s.due_at - clock, '0')
    from holdfast.steps s
   where s.id = any (retry_waits.step_ids) and s.due_at is not null and holdfast.matches_any(allowed, s.tenant);
end
$$;
grant execute on function holdfast.retry_waits to hf_worker;
