-- Marks a listening worker as asleep on a queue, and returns how long until a step there becomes due by time or a
-- schedule has a tick (null: none will). The worker must look for work once more after this has committed: a start
-- before that sent no hint. The next claim that returns steps wakes it.
create or replace function holdfast.mark_asleep(worker text, queue text default 'default')
returns interval
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- by the index of due steps, whatever the statistics say: one entry per priority
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
  tick constant interval := holdfast.next_tick_in(holdfast.allowed_tenants());
  soonest timestamptz;
begin
  perform holdfast.check_name('worker', mark_asleep.worker);
  perform holdfast.check_name('queue', mark_asleep.queue);
  update holdfast.workers w
     set is_asleep = true, seen_at = clock,
         state = case when w.state is not null then 'idle' end  -- a worker without a state does not report states
   where w.worker = mark_asleep.worker and w.queue = mark_asleep.queue
     and holdfast.is_own_worker(w.tenants, holdfast.allowed_tenants());
  for level in 0 .. 9 loop
    soonest := least(soonest, (
      select s.due_at from holdfast.steps s
       where s.queue = mark_asleep.queue and s.priority = level and s.due_at > clock
       order by s.due_at, s.id limit 1));
  end loop;
  soonest := least(soonest, (  -- any worker looks after any limit, whichever queues are parked on it
    select t.wake_at from holdfast.limit_states t where t.wake_at > clock order by t.wake_at limit 1));  -- guard: wake
  -- A tick that is due was locked by somebody, or the worker is of a release that fires none: it must not spin.
  return least(soonest - clock, case when tick > '0' then tick else tick + interval '500 ms' end);  -- guard: tick
end
$$;
grant execute on function holdfast.mark_asleep to hf_worker;
