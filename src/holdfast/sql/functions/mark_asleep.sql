-- A worker that listens says that it goes to sleep on a queue. It must look for work once more after this has committed:
-- what was started before sent no hint. The next claim that brings it something wakes it.
create or replace function holdfast.mark_asleep(worker text, queue text default 'default')
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update holdfast.workers w
     set is_asleep = true, seen_at = holdfast.clock()
   where w.worker = mark_asleep.worker and w.queue = mark_asleep.queue;
end
$$;
