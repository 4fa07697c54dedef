-- Takes the next due task of `queue` for `worker`, under a lease, and gives its row; nothing when there is none. `types` are
-- those it has handlers for (null: any). A queue where steps of runs stand too needs them, or holdfast.claim_steps.
create or replace function work.claim_next_task(
  worker text default format('%s:%s', session_user, pg_backend_pid()), types text[] default null, queue text default 'default',
  lease interval default null)
returns setof work.tasks
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  claimed constant holdfast.claimed_step := (
    select c from holdfast.claim_steps(
      claim_next_task.worker, claim_next_task.queue, claim_next_task.types, 1, claim_next_task.lease) c);
begin
  -- A statement of its own: it sees what the claim has written.
  return query select t.* from work.tasks t where t.id = claimed.step_id;
  if not found and claimed.step_id is not null then
    raise exception using errcode = 'RN005',
      message = format('the next step of queue %s is no task: its kind is %s', claim_next_task.queue, claimed.kind),
      hint = 'name the types of task to take, or claim with holdfast.claim_steps';
  end if;
end
$$;
