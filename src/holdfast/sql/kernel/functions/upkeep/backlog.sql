-- Counts the due steps of a queue, of the login's own tenants. It reads at most `most` entries of the index of due
-- steps.
create or replace function holdfast.backlog(queue text, most int)
returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  allowed constant text[] := holdfast.allowed_tenants();
  looked bigint := 0;
  found bigint := 0;
  seen bigint;
  own bigint;
begin
  for level in 0 .. 9 loop
    select count(*), count(*) filter (where holdfast.matches_any(allowed, d.tenant)) into seen, own
      from (select s.tenant
              from holdfast.steps s
             where s.queue = backlog.queue and s.priority = level and s.due_at <= clock
             limit backlog.most - looked) d;
    looked := looked + seen;
    found := found + own;
    exit when looked >= backlog.most;
  end loop;
  return found;
end
$$;
