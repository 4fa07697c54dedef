-- Plans the rollback of a run for the task that undoes it, and queues it as the actor scheduler; returns its id as
-- `rollback_id`. If it is refused, because another run has some of its items, nothing is left of it and `waits` says
-- why, and `waits_for` is that run. Each run that it waits for is an event.
create or replace function rules.plan_revert(facts rules.run_facts, task_id bigint, reason text)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  made uuid;
  message text;
  other text;
begin
  begin
    select p.rollback_id into strict made
      from rules.plan_rollback(facts, null, null, '[]', false, interval '24 hours', null, plan_revert.reason,
                               'scheduler') p;
    update rules.run_facts f set metadata = f.metadata || jsonb_build_object('task', plan_revert.task_id)
     where f.run_id = made;
    perform rules.queue_as_scheduler(made, plan_revert.reason);
  exception when sqlstate 'RN010' then
    get stacked diagnostics message = message_text, other = column_name;
    other := nullif(other, '');
  end;
  if message is null then
    return jsonb_build_object('rollback_id', made);
  end if;
  if exists (select from rules.run_facts o
              where o.run_id = (case when other ~ '^[0-9a-f-]{36}$' then other end)::uuid
                and o.undoes is distinct from facts.run_id) then
    message := format('run %s is open and has some of its items', other);  -- not of a plan that is gone again
  end if;
  perform rules.write_waiting(facts, format('%s:revert:waiting:%s', facts.run_id, other), message);
  return jsonb_build_object('waits', message, 'waits_for', other);
end
$$;
