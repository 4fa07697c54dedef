-- Retries chosen steps of a run that is over, those that failed and those that were not tried, with a fresh budget.
-- `actor` names the person that the login acts for. Returns the run's state.
create or replace function holdfast.retry_steps(
  id text, ids bigint[], reason text default null, actor text default null)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant holdfast.runs := holdfast.run_to_change(retry_steps.id, retry_steps.reason, retry_steps.actor);
  state text;
begin
  perform holdfast.set_actor('user', coalesce(retry_steps.actor, session_user), retry_steps.reason);
  state := holdfast.readmit(run.id, retry_steps.ids);
  perform holdfast.set_actor();
  return state;
end
$$;
grant execute on function holdfast.retry_steps to hf_operator;
