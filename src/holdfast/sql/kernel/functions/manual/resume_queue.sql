-- Lets claims from a paused queue go on.
create or replace function holdfast.resume_queue(queue text)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform holdfast.check_name('queue', resume_queue.queue);
  perform holdfast.check_all_tenants('resume_queue');  -- a queue is everybody's
  update holdfast.queues q
     set paused_at = null, paused_by = null, pause_reason = null
   where q.queue = resume_queue.queue;
  if not found then
    perform holdfast.refuse('RN004', format('there is no queue %s', resume_queue.queue), 'a queue is made on first use');
  end if;
  perform holdfast.wake(array[resume_queue.queue]);
end
$$;
grant execute on function holdfast.resume_queue to hf_operator;
