-- Makes queues on first use and records the highest priority of each. Reads first, so that it rarely writes this hot
-- row.
create or replace function holdfast.remember_queues(queues text[], priorities int[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into holdfast.queues as q (queue, top_priority, created_at)
  select u.queue, max(u.priority), holdfast.clock()
    from unnest(remember_queues.queues, remember_queues.priorities) u (queue, priority)
    left join holdfast.queues k on k.queue = u.queue
   where k.queue is null or k.top_priority < u.priority
   group by u.queue
   order by u.queue
  on conflict (queue) do update set top_priority = greatest(q.top_priority, excluded.top_priority);
end
$$;
