-- Queues the run that a task has previewed by the clock, as the actor scheduler, and returns null. Or returns why it
-- waits for a person, which is also an event: the schedule only previews, the plan has more targets than the rule
-- allows, more than 5 % of the items that the rule selects were refused, or another open run has some of its items. A
-- worker calls it under the lease of the task; repeating it changes nothing.
create or replace function rules.apply_scheduled(step_id bigint, lease_id bigint, run_id uuid)
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task constant holdfast.steps := rules.held_task(apply_scheduled.step_id, apply_scheduled.lease_id);
  plan constant rules.plans := (select p from rules.plans p where p.run_id = apply_scheduled.run_id);
  facts rules.run_facts;
  why text;
begin
  select f.* into strict facts from rules.run_facts f
   where f.run_id = apply_scheduled.run_id and f.tenant = task.tenant;
  perform rules.lock_channel(facts);
  if (select r.state from holdfast.runs r where r.id = facts.run_id) <> 'PREVIEW' then
    return null;
  end if;
  why := case
    when not coalesce((task.input ->> 'apply')::boolean, true) then 'the schedule only previews'
    when plan.targets > (plan.plan #>> '{rule,guardrails,maxTargets}')::int  -- guard: most
    then format('the plan has %s targets, and the rule allows %s', plan.targets,
                plan.plan #>> '{rule,guardrails,maxTargets}')
    when plan.refused > 0.05 * (plan.targets + plan.unchanged + plan.refused)  -- guard: refusals
    then format('%s of %s items were refused, more than 5 %%', plan.refused,
                plan.targets + plan.unchanged + plan.refused) end;
  if why is null then
    begin
      perform rules.queue_as_scheduler(facts.run_id, format('schedule %s', task.input ->> 'schedule'));
    exception when sqlstate 'RN010' then
      get stacked diagnostics why = message_text;
    end;
  end if;
  if why is not null then
    perform rules.write_waiting(facts, format('%s:waiting', facts.run_id), why);
  end if;
  return why;
end
$$;
grant execute on function rules.apply_scheduled to hf_worker;
