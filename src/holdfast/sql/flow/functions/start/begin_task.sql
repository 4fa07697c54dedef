-- Makes a task of a flow with its steps, as initialize_task does, and returns its id. The caller has called set_actor.
create or replace function flow.begin_task(
  name text, steps jsonb, context jsonb, namespace text, version text, key text, tenant text, skip text[], about jsonb,
  key_for interval default null)
returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  checked_context constant jsonb := flow.checked_object('context', begin_task.context);
  checked_about constant jsonb := flow.checked_object('about', begin_task.about);
  skipped constant jsonb := case when begin_task.skip <> '{}'
    then jsonb_build_object('skip', begin_task.skip) else '{}' end;
  task_id uuid;
begin
  if begin_task.steps = '[]' then
    perform holdfast.refuse('RN005', format('flow %s has no steps', begin_task.name), 'add at least one step');
  end if;
  perform holdfast.check_name('namespace', begin_task.namespace);
  perform holdfast.check_name('version', begin_task.version);
  perform flow.check_skip(begin_task.steps, begin_task.skip);
  task_id := holdfast.begin_run(
    'flow.task', begin_task.name, 'flow.step', begin_task.steps,
    checked_about || skipped || jsonb_build_object(
      'context', checked_context, 'namespace', begin_task.namespace, 'version', begin_task.version),
    begin_task.key, begin_task.tenant, null, begin_task.key_for);
  if begin_task.skip <> '{}' then  -- under a key that was already used they are skipped, and nothing moves
    perform holdfast.set_actor('api', session_user::text, 'skipped by request');
    perform from holdfast.move_steps(array(
      select (n.step_id, null, 'resolved', null, null, null, null)::holdfast.step_move
        from holdfast.run_steps n where n.run_id = task_id and n.name = any (begin_task.skip)));
  end if;
  return task_id;
end
$$;
