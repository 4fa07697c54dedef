-- Tells workers that sleep on one of the queues that something is due there. A hint: polling finds it anyway. Where
-- nobody sleeps nothing is sent, so a busy system sends none.
create or replace function holdfast.wake(queues text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  perform pg_notify('holdfast', s.queue)  -- of equal ones a transaction sends one
     from holdfast.workers s
    where s.is_asleep and s.queue = any (wake.queues) and holdfast.is_live_worker(s.seen_at, clock);
end
$$;
