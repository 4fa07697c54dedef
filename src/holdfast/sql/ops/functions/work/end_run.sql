-- Ends a locked run that is not over. A worker ends its own; others cancel it, by the name that the metadata has.
create or replace function ops.end_run(step holdfast.steps, status text, given jsonb, worker text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  canceller constant text := given ->> 'cancelled_by';
begin
  if end_run.status = 'cancelled' and end_run.worker is null then
    perform holdfast.set_actor(
      'api', case when holdfast.is_name(canceller) then canceller else session_user end,
      left(given ->> 'reason', 1000));
  else
    perform holdfast.set_actor('worker', coalesce(step.lease_owner, end_run.worker), left(given ->> 'reason', 1000));
  end if;
  perform from holdfast.move_steps(array[(
    step.id, step.lease_id,
    case end_run.status when 'success' then 'succeeded' else end_run.status end, null,
    case end_run.status when 'success' then given end,
    case end_run.status when 'failed' then jsonb_build_object(
      'type', 'RunFailed', 'message', coalesce(given ->> 'error', 'the worker reported a failure')) end,
    null)::holdfast.step_move]);
  perform holdfast.set_actor();
  if end_run.status <> 'success' and given <> '{}' then  -- what the caller says overrides what the move says
    update ops.run_facts f set metadata = f.metadata || given where f.step_id = step.id;
  end if;
end
$$;
