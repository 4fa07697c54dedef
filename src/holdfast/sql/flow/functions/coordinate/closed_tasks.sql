-- Lists those tasks of these steps that are over, for the events about their end: how many steps are done and how many
-- failed, when this was read, and the moves of the task itself that `worker` made. In a settle's transaction these are
-- the tasks that the settle closed. Omits tasks of tenants that the login may not act for.
create or replace function flow.closed_tasks(worker text, step_ids bigint[])
returns table (
  task_id uuid, name text, namespace text, version text, completed_steps bigint, failed_steps bigint,
    at timestamptz, moves jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off   -- these steps and their tasks, whatever the statistics say
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
begin
  return query
  select r.id, r.name, coalesce(r.input ->> 'namespace', 'default'), coalesce(r.input ->> 'version', '0.1.0'),
         r.succeeded::bigint, r.failed::bigint, holdfast.clock(), flow.moves_by(r, closed_tasks.worker)
    from holdfast.runs r
   where r.id = any (array(select distinct s.run_id from holdfast.steps s where s.id = any (closed_tasks.step_ids)))
     and r.machine = 'flow.task' and r.finished_at is not null and holdfast.matches_any(allowed, r.tenant)
   order by r.id;
end
$$;
grant execute on function flow.closed_tasks to hf_producer, hf_worker, hf_reader, hf_operator;
