-- Notifies workers that sleep on one of the queues that a step is due there. It is only a hint: polling finds the step
-- anyway. A busy system, where no worker sleeps, sends none.
create or replace function holdfast.wake(queues text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  perform pg_notify('holdfast', s.queue)  -- a transaction sends equal notifications once
     from holdfast.workers s
    where s.is_asleep and s.queue = any (wake.queues) and holdfast.is_live_worker(s.seen_at, clock);
end
$$;
