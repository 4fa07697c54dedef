-- Queues a run that was made without being queued, such as a preview, and admits its first steps. With `first` only so
-- many are admitted, and the others wait for resume_run. Queueing it again changes nothing. `actor` names the person
-- that the login acts for. Returns the run's state.
create or replace function holdfast.queue_run(
  id text, first int default null, reason text default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := holdfast.run_to_change(queue_run.id, queue_run.reason, queue_run.actor);
  state text;
begin
  perform holdfast.set_actor(case when queue_run.actor is null then 'api' else 'user' end,
                             coalesce(queue_run.actor, session_user), queue_run.reason);
  state := holdfast.begin_admission(run.id, queue_run.first);
  perform holdfast.set_actor();
  return state;
end
$$;
grant execute on function holdfast.queue_run to hf_producer, hf_operator;
