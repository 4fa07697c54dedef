-- Moves a step or a run by an event that a person requested: cancelled, reopened or resolved. Raises if there is no
-- such step or run, or if its state does not allow the event. A step's id is a number, a run's id a UUID. `result` is
-- the result of a resolved step. `actor` names the person that the login acts for. The journal then keeps the login as
-- well.
create or replace function holdfast.act_on(
  id text, event text, reason text, result jsonb default null, actor text default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  allowed constant text[] := holdfast.allowed_tenants();
  step holdfast.steps;
  run holdfast.runs;
  answer text;
begin
  perform holdfast.check_reason(act_on.reason);
  perform holdfast.check_size('a result', act_on.result);
  perform holdfast.check_name('actor', act_on.actor);
  if act_on.id ~ '^[0-9]{1,18}$' then
    if act_on.event in ('reopened', 'resolved') then  -- these reopen its run: as for a run, its lock comes first
      perform pg_advisory_xact_lock(holdfast.run_lock(s.run_id))
         from holdfast.steps s
        where s.id = act_on.id::bigint and s.run_id is not null and holdfast.matches_any(allowed, s.tenant);
    end if;
    select s.* into step from holdfast.steps s
     where s.id = act_on.id::bigint
       and holdfast.matches_any(allowed, s.tenant)  -- guard: step-tenant
       for update;
  elsif act_on.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select r.* into run from holdfast.runs r
     where r.id = act_on.id::uuid
       and holdfast.matches_any(allowed, r.tenant)  -- guard: run-tenant
    ;
  end if;
  perform holdfast.set_actor('user', coalesce(act_on.actor, session_user), act_on.reason);
  if step.run_id is not null and not exists (select from holdfast.runs r where r.id = step.run_id) then
    step := null;  -- what is left of a run that retention removes
  end if;
  if step.id is not null then
    answer := holdfast.act_on_step(step, act_on.event, act_on.result);
  elsif run.id is not null and act_on.result is not null then
    perform holdfast.refuse('RN005', 'a run has no result of its own', 'resolve the step whose result is missing',
                            'result');
  elsif run.id is not null then
    answer := holdfast.act_on_run(run, act_on.event);
  else
    perform holdfast.refuse_pruned(act_on.id);
    perform holdfast.refuse('RN004', format('there is no run or step %s', act_on.id),
                            'a step is a number, a run a UUID', act_on.id);
  end if;
  perform holdfast.set_actor();
  return answer;
end
$$;
