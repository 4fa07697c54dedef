-- Tells workers that sleep on one of the queues that something is due there. A hint: polling finds it anyway. Where nobody
-- sleeps nothing is sent, so a busy system sends none.
create or replace function holdfast.wake(queues text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify('holdfast', w.queue)
     from (select distinct s.queue from holdfast.workers s
            where s.is_asleep and s.queue = any (wake.queues)
              and s.seen_at > holdfast.clock() - interval '150 s') w;
end
$$;
