-- Parks those of the steps whose kind no live worker of the queue serves, so that later claims do not walk past them.
-- They keep their due time, and are due again when a worker that serves them claims.
create or replace function holdfast.park_unserved(queue text, candidates bigint[], clock timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  parked int;
begin
  update holdfast.steps s
     set due_at = null, parked_due_at = coalesce(s.due_at, s.parked_due_at), parked_for = 'handler', limited_by = null
   where s.id = any (array(
           select c.id from holdfast.steps c
            where c.id = any (park_unserved.candidates)
              -- not `due_at is not null`: the planner would use the index of due steps
              and (c.due_at + interval '0' is not null or coalesce(c.parked_for, '') = 'limit')
              and not exists (select from holdfast.workers w
                               where w.queue = park_unserved.queue
                                 and holdfast.is_live_worker(w.seen_at, park_unserved.clock)
                                 and holdfast.matches_any(w.kinds, c.kind)
                                 and holdfast.matches_any(w.tenants, c.tenant)
                                 and holdfast.matches(w.machine, c.machine))
              for update skip locked));
  get diagnostics parked = row_count;
  return parked;
end
$$;
