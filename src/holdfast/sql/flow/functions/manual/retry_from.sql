-- Does a step of a finished task again, with all steps that wait for it, in a new task of the same shape, and returns
-- the new task's id. The new task takes over the results of the other steps. A mapped step or a sub-flow that starts
-- again plans its steps anew; one that only waits for one of its own steps that is done again keeps the others.
create or replace function flow.retry_from(step_id bigint, reason text default null)
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task holdfast.runs;
  again bigint[];
  afresh bigint[];
  task_id constant uuid := holdfast.uuid7();
begin
  perform holdfast.check_reason(retry_from.reason);
  task := flow.finished_task_of(retry_from.step_id);
  select array_agg(r.id), array_agg(r.id) filter (where r.is_afresh) into again, afresh
    from flow.waiting_for(retry_from.step_id) r;
  perform holdfast.set_actor('user', session_user::text,
                       coalesce(retry_from.reason, format('from step %s of task %s', retry_from.step_id, task.id)));
  perform holdfast.make_run(
    task_id, task.machine, task.name, 'flow.step', flow.plan_of_run(task.id, afresh),
    (task.input - 'reason') || jsonb_strip_nulls(
      jsonb_build_object('retried_from', retry_from.step_id, 'reason', retry_from.reason)),
    task.tenant, task.id);
  perform holdfast.copy_cursors(task.id, task_id, afresh);  -- the progress of mapped steps and sub-flows
  perform from holdfast.move_steps(array(
    select (n.step_id, null, 'resolved', null, o.result, null, null)::holdfast.step_move
      from holdfast.run_steps n
      join holdfast.run_steps m on m.run_id = task.id and m.name = n.name
      join holdfast.steps o on o.id = m.step_id and o.finished_at is not null
      join holdfast.machine_states t on t.machine = o.machine and t.state = o.state and t.outcome = 'succeeded'
     where n.run_id = task_id
       and o.id <> all (again)  -- guard: taken-over
  ));
  perform holdfast.set_actor();
  return task_id;
end
$$;
grant execute on function flow.retry_from to hf_operator;
