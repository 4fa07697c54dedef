-- Stops claims from a queue until it is resumed; what is held goes on.
create or replace function holdfast.pause_queue(queue text, reason text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('queue', pause_queue.queue);
  perform holdfast.check_reason(pause_queue.reason);
  perform holdfast.check_all_tenants('pause_queue');  -- a queue is everybody's
  update holdfast.queues q
     set paused_at = coalesce(q.paused_at, holdfast.clock()), paused_by = session_user, pause_reason = pause_queue.reason
   where q.queue = pause_queue.queue;
  if not found then
    perform holdfast.refuse('RN004', format('there is no queue %s', pause_queue.queue), 'a queue is made on first use');
  end if;
end
$$;
grant execute on function holdfast.pause_queue to hf_operator;
