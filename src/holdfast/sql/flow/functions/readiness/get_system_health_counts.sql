-- Counts all tasks and steps that the caller may see, in one row, from the runs' own counts and the indexes of due,
-- held, parked and dead steps. It does not read finished steps.
create or replace function flow.get_system_health_counts()
returns table (
  total_tasks bigint, pending_tasks bigint, in_progress_tasks bigint, complete_tasks bigint, error_tasks bigint,
  cancelled_tasks bigint, resolved_tasks bigint, total_steps bigint, pending_steps bigint, in_progress_steps bigint,
  complete_steps bigint, error_steps bigint, cancelled_steps bigint, ready_steps bigint, retryable_error_steps bigint,
  exhausted_retry_steps bigint, in_backoff_steps bigint, connections int, max_connections int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off  -- not all steps
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  clock constant timestamptz := holdfast.clock();
  -- Of finished tasks, only a cancelled one whose steps are still being moved has due steps.
  ended constant uuid[] := array(select r.id from holdfast.runs r where r.moving = 'cancelled');
begin
  return query
  with tasks as (
    select count(*) as total, count(*) filter (where r.state = 'pending') as pending,
           count(*) filter (where r.state = 'in_progress') as in_progress,
             count(*) filter (where r.state = 'complete') as complete,
           count(*) filter (where r.state = 'error') as error,
             count(*) filter (where r.state = 'cancelled') as cancelled,
           count(*) filter (where r.state = 'resolved_manually') as resolved,
             coalesce(sum(r.total), 0)::bigint as steps,
           coalesce(sum(r.succeeded), 0)::bigint as succeeded, coalesce(sum(r.failed), 0)::bigint as failed,
           coalesce(sum(r.cancelled), 0)::bigint as dropped
      from holdfast.runs r where r.machine = 'flow.task' and holdfast.matches_any(allowed, r.tenant)),
  due as (
    select count(*) filter (where s.state = 'error') as retryable,
           count(*) filter (where s.state = 'error' and not holdfast.is_due(s, clock)) as in_backoff,
           count(*) filter (where holdfast.is_ready(s, clock) and q.paused_at is null
                            and s.run_id <> all (ended)) as ready
      from holdfast.steps s left join holdfast.queues q on q.queue = s.queue
     where s.due_at is not null and s.machine = 'flow.step' and holdfast.matches_any(allowed, s.tenant)),
  parked as (
    select count(*) filter (where s.state = 'error') as retryable
      from holdfast.steps s
     where s.parked_for is not null and s.parked_due_at is not null and s.machine = 'flow.step'
       and holdfast.matches_any(allowed, s.tenant)),
  held as (
    select count(*) as total from holdfast.steps s
     where s.lease_until is not null and s.machine = 'flow.step' and holdfast.matches_any(allowed, s.tenant))
  select t.total, t.pending, t.in_progress, t.complete, t.error, t.cancelled, t.resolved, t.steps,
         t.steps - t.succeeded - t.failed - t.dropped - h.total - d.retryable - p.retryable, h.total, t.succeeded,
         t.failed + d.retryable + p.retryable, t.dropped, d.ready, d.retryable + p.retryable, t.failed, d.in_backoff,
         (select b.numbackends from pg_stat_database b where b.datname = current_database()),
         current_setting('max_connections')::int
    from tasks t, due d, parked p, held h;
end
$$;
grant execute on function flow.get_system_health_counts to hf_producer, hf_worker, hf_reader, hf_operator;
