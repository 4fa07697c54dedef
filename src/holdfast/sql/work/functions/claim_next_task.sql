-- Takes the next due task of `queue` for `worker`, under a lease, and gives its row; nothing when there is none.
-- `types` are those it has handlers for (null: any). Steps of runs that stand in the queue are passed over.
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
  -- A statement of its own: it sees what the claim has written.
  return query select t.* from work.tasks t where t.id = claimed;
end
$$;
grant execute on function work.claim_next_task to hf_worker;
