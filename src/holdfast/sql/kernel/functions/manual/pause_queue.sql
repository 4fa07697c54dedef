-- Stops claims from a queue until it is resumed; held steps continue. `actor` names the person that the login acts for.
create or replace function holdfast.pause_queue(queue text, reason text default null, actor text default null)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  perform holdfast.check_name('queue', pause_queue.queue);
  perform holdfast.check_reason(pause_queue.reason);
  perform holdfast.check_name('actor', pause_queue.actor);
  perform holdfast.check_all_tenants('pause_queue');  -- all tenants share a queue
  update holdfast.queues q
     set paused_at = coalesce(q.paused_at, clock), paused_by = coalesce(pause_queue.actor, session_user),
         pause_reason = pause_queue.reason
   where q.queue = pause_queue.queue;
  if not found then
    perform holdfast.refuse('RN004', format('there is no queue %s', pause_queue.queue),
                            '`holdfast queues list` shows them; a first start makes a queue', pause_queue.queue);
  end if;
  insert into holdfast.queue_pauses (at, queue, event, actor, login, reason)
  values (clock, pause_queue.queue, 'paused', coalesce(pause_queue.actor, session_user),
          case when pause_queue.actor <> session_user then session_user end, pause_queue.reason);
end
$$;
grant execute on function holdfast.pause_queue to hf_operator;
