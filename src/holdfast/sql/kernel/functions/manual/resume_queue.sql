-- Allows claims from a paused queue again. `actor` names the person that the login acts for.
create or replace function holdfast.resume_queue(queue text, reason text default null, actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  was_paused boolean;
begin
  perform holdfast.check_name('queue', resume_queue.queue);
  perform holdfast.check_reason(resume_queue.reason);
  perform holdfast.check_name('actor', resume_queue.actor);
  perform holdfast.check_all_tenants('resume_queue');  -- all tenants share a queue
  select q.paused_at is not null into was_paused from holdfast.queues q where q.queue = resume_queue.queue for update;
  if was_paused is null then
    perform holdfast.refuse('RN004', format('there is no queue %s', resume_queue.queue),
                            '`holdfast queues list` shows them; a first start makes a queue', resume_queue.queue);
  end if;
  if was_paused then
    update holdfast.queues q
       set paused_at = null, paused_by = null, pause_reason = null
     where q.queue = resume_queue.queue;
    insert into holdfast.queue_pauses (at, queue, event, actor, login, reason)
    values (holdfast.clock(), resume_queue.queue, 'resumed', coalesce(resume_queue.actor, session_user),
            case when resume_queue.actor <> session_user then session_user end, resume_queue.reason);
  end if;
  perform holdfast.wake(array[resume_queue.queue]);
end
$$;
grant execute on function holdfast.resume_queue to hf_operator;
