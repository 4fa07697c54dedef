-- Of these runs, returns those whose steps should not begin: they are paused, stopped or over. Workers ask it about
-- steps that they hold and have not begun.
create or replace function holdfast.halted_runs(run_ids uuid[])
returns setof uuid
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by primary key, whatever the statistics say
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select r.id from holdfast.runs r
   where r.id = any (halted_runs.run_ids) and holdfast.matches_any(allowed, r.tenant)
     and (r.halt in ('paused', 'stopped') or r.finished_at is not null);
end
$$;
grant execute on function holdfast.halted_runs to hf_worker;
