-- Claims the next due task of `queue` for `worker`, under a lease, and returns its row, or no row. `types` names the
-- handlers that the worker has (null: any). Steps of runs in the queue are passed over.
create or replace function work.claim_next_task(
  worker text default format('%s:%s', session_user, pg_backend_pid()), types text[] default null,
    queue text default 'default',
  lease interval default null)
returns setof work.tasks
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  claimed constant bigint := (
    select c.step_id from holdfast.claim_steps(
      claim_next_task.worker, claim_next_task.queue, claim_next_task.types, 1, claim_next_task.lease,
      machine => 'work.task') c);
begin
  -- A statement of its own, so that it sees the rows that the claim wrote.
  return query select t.* from work.tasks t where t.id = claimed;
end
$$;
grant execute on function work.claim_next_task to hf_worker;
