-- Carries out a person's wish for a step or a run: cancelled, reopened or resolved. Raises when there is no such thing or
-- its state does not allow it. A step's number is digits, a run's id a UUID. `result` is what a resolved step is to give.
-- `actor` names the person that the login acts for; the journal keeps the login beside it.
create or replace function holdfast.wish(
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
  perform holdfast.check_reason(wish.reason);
  perform holdfast.check_size('a result', wish.result);
  perform holdfast.check_name('actor', wish.actor);
  if wish.id ~ '^[0-9]{1,18}$' then
    select s.* into step from holdfast.steps s
     where s.id = wish.id::bigint and holdfast.matches_any(allowed, s.tenant) for update;
  elsif wish.id ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select r.* into run from holdfast.runs r
     where r.id = wish.id::uuid and holdfast.matches_any(allowed, r.tenant);
  end if;
  perform holdfast.act('user', coalesce(wish.actor, session_user), wish.reason);
  if step.id is not null then
    answer := holdfast.wish_for_step(step, wish.event, wish.result);
  elsif run.id is not null and wish.result is not null then
    perform holdfast.refuse('RN005', 'a run has no result of its own', 'resolve the step whose result is missing');
  elsif run.id is not null then
    answer := holdfast.wish_for_run(run, wish.event);
  else
    perform holdfast.refuse('RN004', format('there is no run or step %s', wish.id), 'a step is a number, a run a UUID');
  end if;
  perform holdfast.act();
  return answer;
end
$$;
