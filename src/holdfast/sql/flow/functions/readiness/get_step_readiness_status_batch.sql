-- Returns the state of the steps of several tasks (`step_ids` of them, or all), and which are ready: those that a claim
-- would take now, by the same predicate. A step that is not ready, held or over has a waiting_reason, the first that
-- applies. Shows what its caller may see.
create or replace function flow.get_step_readiness_status_batch(task_ids uuid[], step_ids bigint[] default null)
returns setof flow.step_readiness
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- the steps of these tasks and their parents, whatever the statistics say
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  clock constant timestamptz := holdfast.clock();
begin
  return query
  select f.step_id, f.task_id, f.name, f.state, h.waits = 0,
         (f.attempts = 0 or (f.retryable and coalesce(f.attempts < f.retry_limit, true))) and e.is_expired,
         w.is_ready,
         f.last_failure_at, f.next_retry_at, p.total, p.completed, f.attempts, f.retry_limit,
         f.backoff_request_seconds, f.last_attempted_at, f.processed, f.in_process, f.retryable, e.is_expired,
         case when w.is_ready or f.in_process or h.finished_at is not null then null
              when r.finished_at is not null then 'task_over'
              when h.waits > 0 then 'dependencies'
              when h.parked_for = 'handler' then 'unserved'
              when h.parked_for = 'move' then 'no_move'
              when h.parked_for = 'limit' then 'limited'
              when h.parked_for is not null then 'parked'
              when q.paused_at is not null then 'queue_paused'
              when holdfast.is_due(h, clock) then 'limited'
              when f.state = 'error' then 'backoff'
              when h.last_event = 'snoozed' then 'snoozed'
              else 'scheduled' end
    from unnest(get_step_readiness_status_batch.task_ids) u (id)
    join holdfast.runs r on r.id = u.id
    join flow.steps f on f.task_id = r.id
    join holdfast.steps h on h.id = f.step_id
    left join holdfast.queues q on q.queue = h.queue
   cross join lateral (
     select count(*)::int as total,
            (count(*) filter (where s.state in ('complete', 'resolved_manually')))::int as completed
       from holdfast.edges e left join holdfast.steps s on s.id = e.step_id
      where e.next_id = h.id) p
   cross join lateral (select coalesce(f.next_retry_at <= clock, true) as is_expired) e
   cross join lateral (
     select coalesce(
       holdfast.is_ready(h, clock) and q.paused_at is null and r.finished_at is null, false) as is_ready) w
   where get_step_readiness_status_batch.step_ids is null
      or f.step_id = any (get_step_readiness_status_batch.step_ids)
   order by f.task_id, f.step_id;
end
$$;
grant execute on function flow.get_step_readiness_status_batch to hf_producer, hf_worker, hf_reader, hf_operator;
