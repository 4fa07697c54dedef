-- Starts a task of a flow with its steps, all or nothing, and returns its id. `steps` is the plan (holdfast.start_run);
-- its limits and weights may name fields of the context. `skip` names skippable steps that are not to be done, and
-- `about` may have tags, initiator, source_system and reason. A context or `about` of null is empty.
create or replace function flow.initialize_task(
  name text, steps jsonb, context jsonb default '{}', namespace text default 'default', version text default '0.1.0',
  key text default null, tenant text default 'default', skip text[] default '{}', about jsonb default '{}')
returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  checked_context constant jsonb := flow.checked_object('context', initialize_task.context);
  checked_about constant jsonb := flow.checked_object('about', initialize_task.about);
  skipped constant jsonb := case when initialize_task.skip <> '{}'
    then jsonb_build_object('skip', initialize_task.skip) else '{}' end;
  task_id uuid;
begin
  if initialize_task.steps = '[]' then
    perform holdfast.refuse('RN005', format('flow %s has no steps', initialize_task.name), 'add at least one step');
  end if;
  perform holdfast.check_name('namespace', initialize_task.namespace);
  perform holdfast.check_name('version', initialize_task.version);
  perform flow.check_skip(initialize_task.steps, initialize_task.skip);
  task_id := holdfast.start_run(
    'flow.task', initialize_task.name, 'flow.step', flow.fill_limits(initialize_task.steps, checked_context),
    checked_about || skipped || jsonb_build_object(
      'context', checked_context, 'namespace', initialize_task.namespace, 'version', initialize_task.version),
    initialize_task.key, initialize_task.tenant);
  if initialize_task.skip <> '{}' then  -- under a key that was already used they are skipped, and nothing moves
    perform holdfast.set_actor('api', session_user::text, 'skipped by request');
    perform from holdfast.move_steps(array(
      select (n.step_id, null, 'resolved', null, null, null, null)::holdfast.step_move
        from holdfast.run_steps n where n.run_id = task_id and n.name = any (initialize_task.skip)));
    perform holdfast.set_actor();
  end if;
  return task_id;
end
$$;
grant execute on function flow.initialize_task to hf_producer, hf_worker, hf_operator;
